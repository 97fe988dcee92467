//! Programs of the system that take part in works.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use apus_testbed::error::{Doing, Error};

/// Runs a program in a directory, and returns its standard output.
pub(super) fn run(
    program: &str,
    arguments: &[impl AsRef<OsStr>],
    directory: &Path,
) -> Result<String, Error> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .env("LC_ALL", "C")
        // The settings of this user and this machine would change the behaviour of git.
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::null())
        .output()
        .doing(|| format!("run {program}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = match said.trim().lines().next() {
        Some(line) => line.to_owned(),
        None => output.status.to_string(),
    };
    Err(Error::Agent { agent: program.to_owned(), said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_complaints_are_passed_on() {
        let here = Path::new("/");
        assert_eq!(run("sh", &["-c", "echo $PWD"], here).unwrap(), "/\n");
        let error = run("sh", &["-c", "echo why >&2; false"], here).unwrap_err();
        assert_eq!(error.to_string(), "sh: why");
    }
}
