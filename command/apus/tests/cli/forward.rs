//! Commands of `apus-lab`: `apus` runs it with all arguments, or prints how to install it.

use std::path::Path;
use std::process::Command;

use crate::harness::{apus, text, with_fake};

/// Prints its arguments, and exits with a distinct status.
const SCRIPT: &str = "echo \"$@\"; exit 7";

#[test]
fn the_other_program_gets_all_arguments_and_its_status_is_returned() {
    // A copy alone in its folder: a real `apus-lab` may exist next to the command under test.
    let folder = tempfile::tempdir().unwrap();
    let path = with_fake(folder.path(), "apus-lab", SCRIPT);
    for words in ["demo --json", "bench --help", "fs bench --rtt 2.3", "help sim run", "fs check"] {
        let mut command = alone(folder.path());
        let output = command.args(words.split(' ')).env("PATH", &path).output().unwrap();
        assert_eq!(text(&output.stdout).trim_end(), words);
        assert_eq!(output.status.code(), Some(7), "{words}");
    }
}

#[test]
fn without_the_other_program_the_command_says_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = alone(folder.path()).arg("demo").env("PATH", folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    for part in ["apus-lab is neither beside", "package apus-lab", "--path lab/command"] {
        assert!(stderr.contains(part), "{stderr}");
    }
}

/// Returns the command under test, copied into `folder`.
fn alone(folder: &Path) -> Command {
    let copy = folder.join("apus");
    if !copy.exists() {
        // A separate process copies: a file that is open for writing cannot be executed.
        let done = Command::new("cp").arg(apus().get_program()).arg(&copy).status();
        assert!(done.unwrap().success());
    }
    Command::new(copy)
}
