//! System programs (`ip`, `tc`, `nft`, …), run inside a namespace.
//!
//! Each program receives all its commands in one batch (`ip -batch` and the like).

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::error::FabricError;
use apus_measure::error::{Doing, Error};
use apus_measure::program;

/// A system program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Creates interfaces.
    Ip,
    /// Configures the ports of hosts.
    Bridge,
    /// Shapes links.
    Tc,
    /// Drops packets.
    Nft,
    /// Creates namespaces.
    Unshare,
    /// Enters namespaces.
    Nsenter,
    /// Lowers the scheduling priority.
    Chrt,
}

impl Tool {
    pub(super) const fn program(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Bridge => "bridge",
            Self::Tc => "tc",
            Self::Nft => "nft",
            Self::Unshare => "unshare",
            Self::Nsenter => "nsenter",
            Self::Chrt => "chrt",
        }
    }

    const fn package(self) -> &'static str {
        match self {
            Self::Ip | Self::Bridge | Self::Tc => "iproute2",
            Self::Nft => "nftables",
            Self::Unshare | Self::Nsenter | Self::Chrt => "util-linux",
        }
    }

    /// Returns the path of the program.
    pub fn find(self) -> Result<PathBuf, Error> {
        program::find(self.program()).ok_or_else(|| self.missing().into())
    }

    const fn missing(self) -> FabricError {
        FabricError::Missing { program: self.program(), package: self.package() }
    }

    /// Runs the program in the namespace entered by `enter`, with `input` on its standard input.
    /// Returns its output.
    pub(super) fn run(
        self,
        place: &str,
        enter: &[OsString],
        arguments: &[&str],
        input: &str,
    ) -> Result<String, Error> {
        let command = format!("{} {}", self.program(), arguments.join(" "));
        let doing = || format!("{place}: {command}");
        let [first, rest @ ..] = enter else { unreachable!("there is always a way in") };
        let mut child = Command::new(first)
            .args(rest)
            .arg(self.find()?)
            .args(arguments)
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .doing(doing)?;
        // These programs read all input before they print more than a pipe can buffer. A program
        // that exits early reports the reason on standard error.
        let written = child.stdin.take().expect("piped above").write_all(input.as_bytes());
        let output = child.wait_with_output().doing(doing)?;
        if output.status.success() {
            written.doing(doing)?;
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        let said = match complaint.trim() {
            "" => output.status.to_string(),
            complaint => with_line(complaint, input),
        };
        Err(FabricError::Command { place: place.to_owned(), command, said }.into())
    }
}

/// Appends the text of line 3 to `Command failed -:3`.
fn with_line(complaint: &str, input: &str) -> String {
    let number = complaint.lines().find_map(|line| line.strip_prefix("Command failed -:"));
    let number = number.and_then(|number| number.trim().parse::<usize>().ok());
    let line = number.and_then(|number| input.lines().nth(number.checked_sub(1)?));
    let said = complaint.lines().collect::<Vec<_>>().join("; ");
    match line {
        Some(line) => format!("{said} ({line})"),
        None => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_reported_with_its_package() {
        for (tool, package) in
            [(Tool::Ip, "iproute2"), (Tool::Nft, "nftables"), (Tool::Unshare, "util-linux")]
        {
            let said = tool.missing().to_string();
            assert!(said.contains(tool.program()) && said.contains(package), "{said}");
        }
    }

    #[test]
    fn a_complaint_about_a_line_shows_the_line() {
        let input = "link add a\nlink add b\n";
        let said = with_line("RTNETLINK answers: File exists\nCommand failed -:2", input);
        assert_eq!(said, "RTNETLINK answers: File exists; Command failed -:2 (link add b)");
        assert_eq!(with_line("Command failed -:0", input), "Command failed -:0");
        assert_eq!(with_line("no such thing", input), "no such thing");
    }
}
