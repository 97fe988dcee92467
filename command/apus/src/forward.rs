//! Forwarding: runs `apus-lab` for its commands.

use std::ffi::{OsStr, OsString};

use apus_command_line::failure::Failure;
use apus_command_line::program;

/// Program for measurements and proofs.
const LAB: &str = "apus-lab";

/// Commands of `apus-lab`.
const COMMANDS: [&str; 5] = ["demo", "bench", "sim", "lab", "fabric"];

/// Commands of `apus-lab fs`.
const FILE_COMMANDS: [&str; 2] = ["bench", "check"];

/// Replaces this process with `apus-lab` if `words`, which start with the program's name, name one
/// of its commands. Returns the failure if it cannot be started; `None` if the command belongs to
/// this program.
pub(crate) fn run_elsewhere(words: &[OsString]) -> Option<Failure> {
    let arguments = words.get(1..)?;
    is_of_the_lab(arguments).then(|| {
        let remedy = "install the package apus-lab, or build it in a checkout with \
                      `cargo install --path lab/command`";
        program::replace_with(LAB, arguments, remedy)
    })
}

/// Returns whether these arguments name a command of `apus-lab`, also after `help`.
fn is_of_the_lab(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().map(OsString::as_os_str).peekable();
    words.next_if(|word| *word == "help");
    let is_one_of = |word: Option<&OsStr>, names: &[&str]| {
        word.is_some_and(|word| names.iter().any(|name| word == *name))
    };
    match words.next() {
        Some(word) if word == "fs" => is_one_of(words.next(), &FILE_COMMANDS),
        word => is_one_of(word, &COMMANDS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_forwarded(line: &str) -> bool {
        is_of_the_lab(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn commands_of_the_lab_are_forwarded_and_so_is_their_help() {
        for line in ["demo", "bench rtt --json", "sim", "lab soak", "fabric up", "fs bench --rtt 1"]
        {
            assert!(is_forwarded(line) && is_forwarded(&format!("help {line}")), "{line}");
        }
    }

    #[test]
    fn commands_of_operators_are_not() {
        for line in ["serve demo", "fs", "fs serve bench", "help", "help fs", "--help", "benches"] {
            assert!(!is_forwarded(line), "{line}");
        }
    }
}
