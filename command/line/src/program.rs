//! Programs of other packages, which replace this process.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use apus_measure::program;

use crate::failure::Failure;

/// Replaces this process with another program of apus, next to this program or in PATH. Returns
/// only on failure; `remedy` explains how to obtain the program.
#[must_use]
pub fn replace_with(name: &str, arguments: &[OsString], remedy: &str) -> Failure {
    let Some(program) = program::beside(name) else {
        let problem = format!("{name} is neither beside this program nor in PATH; {remedy}");
        return Failure::Work(problem);
    };
    let error = Command::new(&program).args(arguments).exec();
    Failure::of(&format!("start {}", program.display()), &error)
}
