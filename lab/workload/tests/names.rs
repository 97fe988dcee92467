//! Scenario: a user names a workload on a command line.

use std::fs;

use apus_workload::Workload;

/// Writes a file with this text into cargo's folder for tests.
fn file(name: &str, text: &str) -> String {
    let path = format!("{}/{name}", env!("CARGO_TARGET_TMPDIR"));
    fs::write(&path, text).expect("the directory for tests is writable");
    path
}

fn parse(name: &str) -> Workload {
    name.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn published_workloads_have_names() {
    for number in 1..=5 {
        assert_eq!(parse(&format!("w{number}")), Workload::published(number));
        assert_eq!(parse(&format!("W{number}")), Workload::published(number));
    }
    assert_eq!(parse("W4").to_string(), "w4");
}

#[test]
fn a_number_is_a_size() {
    assert_eq!(parse("100").sizes().iter().collect::<Vec<_>>(), [(100, 1.0)]);
    assert_eq!(parse("0").sizes().iter().collect::<Vec<_>>(), [(0, 1.0)], "empty messages");
    assert_eq!(parse("1_000_000").to_string(), "1000000");
}

#[test]
fn a_path_is_a_file() {
    let path = file("two.cdf", "# two sizes\n100 0.5\n1000 1\n");
    let workload = parse(&path);
    assert_eq!(workload.sizes().iter().collect::<Vec<_>>(), [(100, 0.5), (1000, 0.5)]);
    assert_eq!(workload.to_string(), path);
}

#[test]
fn truncation_shows_in_the_name_when_it_changes_something() {
    assert_eq!(parse("w4").truncated(1_000_000).to_string(), "w4 truncated at 1000000 bytes");
    assert_eq!(parse("w1").truncated(1_000_000).to_string(), "w1");
}

#[test]
fn the_error_for_an_unknown_name_lists_valid_names() {
    for name in ["w0", "w6", "w", "", "-1", "1e6", "no-such-file"] {
        let error = name.parse::<Workload>().unwrap_err().to_string();
        assert!(error.contains(&format!("`{name}`")), "{error}");
        assert!(error.contains("`w1` to `w5`") && error.contains("`100`"), "{error}");
        assert!(error.contains("`./sizes.cdf`"), "{error}");
    }
}

#[test]
fn a_mistake_in_a_file_names_file_and_line() {
    let path = file("wrong.cdf", "100 0.5\n\n50 1\n");
    let error = path.parse::<Workload>().unwrap_err().to_string();
    assert_eq!(error, format!("{path}: line 3: the size does not increase: 50 follows 100"));
}
