//! `fan-out`.

use crate::program::output;

#[test]
fn three_replicas_of_five_answer() {
    let printed = output("fan-out", &[]);
    let mut names: Vec<&str> =
        printed.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["replica 2", "replica 3", "replica 4"]);
}
