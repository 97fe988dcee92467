//! Agents on hosts reachable by ssh.
//!
//! Every host is checked before any agent starts: ssh connects without asking for input, the
//! program exists and has this version, and the address that ssh connected to is determined. Agents
//! then run as remote commands. When the connection breaks, the agent reads the end of its input
//! and exits. If the network does not report the break, ssh notices within 15 s.

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::IpAddr;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

use super::hosts::SshHost;
use apus_measure::error::{Doing, Error};
use apus_measure::process::{Crew, RunningAgent, Task};
use apus_report::result::COMMIT;

/// Options of ssh. The first value of an option counts, so options in the user's own command
/// prevail.
const OPTIONS: [&str; 11] = [
    // No terminal, no agent, no X11.
    "-T",
    "-a",
    "-x",
    // No prompts.
    "-oBatchMode=yes",
    "-oConnectTimeout=10",
    // Detects dead connections.
    "-oServerAliveInterval=5",
    "-oServerAliveCountMax=3",
    // A separate connection for each agent, not kept open by a background process.
    "-oControlMaster=no",
    "-oControlPath=none",
    // Overrides settings intended for interactive use.
    "-oRemoteCommand=none",
    "-oClearAllForwardings=yes",
];

/// Hosts that passed the check and can run agents.
#[derive(Debug)]
pub struct Ssh {
    command: Vec<OsString>,
    hosts: Vec<CheckedHost>,
}

/// A checked host.
#[derive(Clone, Debug)]
struct CheckedHost {
    host: SshHost,
    /// Path of the program, quoted for the remote shell.
    program: String,
    bind: IpAddr,
}

impl Ssh {
    /// Checks all hosts in parallel.
    ///
    /// `command` is the prefix of the command lines, for example `ssh` or `ssh -F FILE`. `program`
    /// is the path of the program on hosts that specify no other.
    ///
    /// # Errors
    ///
    /// The first host of the file that cannot take part, with the reason and a remedy, and the
    /// names of others that cannot.
    pub fn check(
        hosts: &[SshHost],
        command: Vec<OsString>,
        program: &OsStr,
    ) -> Result<Self, Error> {
        let checks = thread::scope(|scope| {
            let check = |host| {
                let command = &command;
                scope.spawn(move || check(host, command, program))
            };
            let checks: Vec<_> = hosts.iter().map(check).collect();
            checks
                .into_iter()
                .map(|check| check.join().expect("it does not panic"))
                .collect::<Vec<_>>()
        });
        let mut failures = hosts
            .iter()
            .zip(&checks)
            .filter_map(|(host, check)| Some((host, check.as_ref().err()?)));
        if let Some((host, problem)) = failures.next() {
            let also: Vec<_> = failures.map(|(host, _)| host.destination.as_str()).collect();
            let also = if also.is_empty() {
                String::new()
            } else {
                format!(" (nor can take part: {})", also.join(", "))
            };
            let agent = format!("{} (line {} of the host file)", host.destination, host.line);
            return Err(Error::Agent { agent, said: format!("{problem}{also}") });
        }
        Ok(Self { command, hosts: checks.into_iter().flatten().collect() })
    }

    /// Returns the number of hosts.
    pub(super) const fn nodes(&self) -> usize {
        self.hosts.len()
    }

    /// Starts an agent for each task, on the first `nodes` hosts, round robin.
    pub(super) fn start(&self, nodes: usize, tasks: Vec<Task>) -> Result<Crew, Error> {
        Crew::begin_all(self.hosts[..nodes].iter().cycle().zip(tasks).map(|(checked, task)| {
            let CheckedHost { host, program, bind } = checked;
            let task = task.on_host(&host.destination, *bind);
            let prefix = command_line(&self.command, host);
            let command = OsString::from(format!("exec {program}"));
            let about = checked.clone();
            let remedy = Box::new(move |status: ExitStatus, said: &str| {
                remedy(&about.host, &about.program, status, said)
            });
            let body = RunningAgent::process(&prefix, &command, remedy);
            (body.doing(|| format!("start {} with ssh", task.name)), task)
        }))
    }
}

/// Returns the `ssh` command without the remote command.
fn command_line(command: &[OsString], host: &SshHost) -> Vec<OsString> {
    let mut words = command.to_vec();
    words.extend(OPTIONS.map(OsString::from));
    if let Some(port) = host.port {
        words.push(format!("-p{port}").into());
    }
    words.push("--".into());
    words.push(host.destination.clone().into());
    words
}

/// Quotes the program's path for the remote shell, which starts in the home directory.
fn quoted(program: &OsStr) -> Result<String, String> {
    let Some(program) = program.to_str() else {
        return Err(format!(
            "the program's path {} is not UTF-8: set program=PATH",
            program.display()
        ));
    };
    // The shell does not expand quoted text.
    let program = match program.strip_prefix("~/") {
        Some(path) => format!("./{path}"),
        None => program.to_owned(),
    };
    match shlex::try_quote(&program) {
        Ok(quoted) => Ok(quoted.into_owned()),
        Err(error) => Err(format!("the program's path cannot be quoted for a shell: {error}")),
    }
}

/// Queries a host for its address and the program's version.
fn check(host: &SshHost, command: &[OsString], program: &OsStr) -> Result<CheckedHost, String> {
    let program = quoted(host.program.as_deref().map_or(program, OsStr::new))?;
    let words = command_line(command, host);
    let (ssh, words) = words.split_first().ok_or("no command instead of ssh")?;
    let output = Command::new(ssh)
        .args(words)
        .arg(format!("printenv SSH_CONNECTION; exec {program} --version"))
        .stdin(Stdio::null())
        .output();
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!(
            "there is no {} here: install OpenSSH's client (openssh-client in Debian)",
            ssh.display()
        ),
        _ => format!("start {}: {error}", ssh.display()),
    })?;
    let complaints = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if !output.status.success() {
        let how =
            if complaints.is_empty() { output.status.to_string() } else { complaints.clone() };
        return Err(match remedy(host, &program, output.status, &complaints) {
            Some(remedy) => format!("{how}; {remedy}"),
            None => how,
        });
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let reached = parse_check(&said, &program)?;
    Ok(CheckedHost { host: host.clone(), program, bind: host.bind.unwrap_or(reached) })
}

/// Returns the address that ssh connected to, from the output of the check. The version must match
/// this program's.
fn parse_check(said: &str, program: &str) -> Result<IpAddr, String> {
    let mut lines = said.lines();
    let first = lines.next().unwrap_or_default();
    // Address and port of the client, then address and port of the server.
    let fields: Vec<_> = first.split(' ').collect();
    let address = match fields[..] {
        [_, _, address, port] if port.parse::<u16>().is_ok() => address.parse().ok(),
        _ => None,
    };
    let Some(address) = address else {
        return Err(format!(
            "its shell prints `{}` before anything else: let its start-up files print \
             in terminals only",
            first.escape_debug()
        ));
    };
    let version = lines.next().unwrap_or_default();
    if is_ours(version) {
        return Ok(address);
    }
    let commit = if COMMIT == "unknown" { String::new() } else { format!(" ({COMMIT})") };
    Err(format!(
        "{program} there is `{}`, and this is version {}{commit}: install the same on all hosts",
        version.escape_debug(),
        env!("CARGO_PKG_VERSION")
    ))
}

/// Returns whether the output of `--version`, like `apus 0.1.0 (0123456789ab)`, matches this
/// program. A program built without a commit matches any commit.
fn is_ours(said: &str) -> bool {
    let mut words = said.split(' ').skip(1);
    let version = words.next() == Some(env!("CARGO_PKG_VERSION"));
    let commit = words.next().map(|word| word.trim_matches(['(', ')']));
    version && commit.is_none_or(|commit| commit == COMMIT || COMMIT == "unknown")
}

/// Returns advice about the failure of a remote command.
fn remedy(host: &SshHost, program: &str, status: ExitStatus, said: &str) -> Option<String> {
    let SshHost { destination, port, .. } = host;
    let port_option = port.map(|port| format!("-p {port} ")).unwrap_or_default();
    let says = |words: &str| said.contains(words);
    match status.code()? {
        127 => Some(format!("{program} does not exist there: install it, or set program=PATH")),
        126 => {
            Some(format!("{program} cannot run there: is it a program for that kind of machine?"))
        }
        255 if says("Permission denied") => Some(format!(
            "a password cannot be entered: put a key there (ssh-copy-id {port_option}{destination}), \
             and add it to ssh-agent if it has a passphrase"
        )),
        255 if says("Host key verification failed") => Some(format!(
            "its host key is unknown to ssh or has changed: connect once by hand (ssh {port_option}{destination}) \
             and follow the advice of ssh"
        )),
        255 if says("Could not resolve") => Some("is the name written correctly?".to_owned()),
        255 if says("refused") => {
            let port = port.unwrap_or(22);
            Some(format!("does sshd run there, at port {port}? Write another port as HOST:PORT"))
        }
        255 if says("timed out") || says("No route") || says("unreachable") => {
            Some("is it up, and does a firewall let ssh through?".to_owned())
        }
        255 => Some(format!("try by hand: ssh {port_option}{destination}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_quoted_as_one_word() {
        let word = |program: &str| quoted(OsStr::new(program)).unwrap();
        assert_eq!(word("/usr/bin/apus"), "/usr/bin/apus");
        assert_eq!(word("~/apus"), "./apus", "commands start in the home directory");
        for name in ["/opt/my apus", "/opt/a'pus; rm -rf x", "/opt/$(apus)`x`\"", "/opt/a*b\\"] {
            let script = format!("printf %s {}", word(name));
            let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
            assert_eq!(output.stdout, name.as_bytes(), "{name}");
        }
    }

    #[test]
    fn a_check_returns_the_address_and_compares_the_version() {
        let version = env!("CARGO_PKG_VERSION");
        let parse = |said: &str| parse_check(said, "/bin/apus");
        let good = format!("10.0.0.1 5000 10.0.0.2 22\napus {version}\n");
        assert_eq!(parse(&good), Ok([10, 0, 0, 2].into()));
        assert!(parse(&format!("Welcome!\n{good}")).unwrap_err().contains("`Welcome!`"));
        let same = format!("10.0.0.1 5000 10.0.0.2 22\napus {version} ({COMMIT})\n");
        assert_eq!(parse(&same), Ok([10, 0, 0, 2].into()));
        let other = parse("::1 5000 ::1 22\napus 0.0.0\n").unwrap_err();
        assert!(other.contains("`apus 0.0.0`") && other.contains(version), "{other}");
        assert!(parse("").is_err());
    }
}
