//! Programs of the system that take part in works.

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use apus_testbed::error::{Doing, Error};

/// Folders of administrators' programs, which an ordinary user's `PATH` may lack.
const SBIN: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Returns the path of an installed program.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(SBIN.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| {
        file.metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}

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
        // The settings of this user and this machine change what git does.
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
    fn programs_are_found_and_what_they_say_is_passed_on() {
        assert!(find("sh").is_some() && find("no-such-program").is_none());
        let here = Path::new("/");
        assert_eq!(run("sh", &["-c", "echo $PWD"], here).unwrap(), "/\n");
        let error = run("sh", &["-c", "echo why >&2; false"], here).unwrap_err();
        assert_eq!(error.to_string(), "sh: why");
    }
}
