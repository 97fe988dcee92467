//! How does an agent start on a host that ssh reaches?
//!
//! Every host is visited once before anything begins: whether ssh comes in without being asked for
//! anything, whether the program is there and of this version, and at which address the host was reached.
//! Agents then run as commands over there. If the connection breaks, the agent sees the end of its input
//! and ends; if the network between does not say so, ssh notices after 15 s.

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::IpAddr;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

use super::hosts::SshHost;
use super::placed;
use crate::error::{Doing, Error};
use crate::process::{Crew, Embodied, Task};
use apus_report::result::COMMIT;

/// What is asked of ssh. The first value given for an option counts: what is in the user's own command
/// prevails.
const OPTIONS: [&str; 11] = [
    // No terminal, no agent, no X11.
    "-T",
    "-a",
    "-x",
    // Nobody is there to answer.
    "-oBatchMode=yes",
    "-oConnectTimeout=10",
    // A connection that is silently dead ends.
    "-oServerAliveInterval=5",
    "-oServerAliveCountMax=3",
    // A connection of its own for each agent, which no process in the background keeps open.
    "-oControlMaster=no",
    "-oControlPath=none",
    // Whatever the configuration says for people.
    "-oRemoteCommand=none",
    "-oClearAllForwardings=yes",
];

/// Hosts on which agents can start: each has been visited.
#[derive(Debug)]
pub struct Ssh {
    command: Vec<OsString>,
    hosts: Vec<Visited>,
}

/// A host, and what the visit told.
#[derive(Clone, Debug)]
struct Visited {
    host: SshHost,
    /// Quoted for the shell over there.
    program: String,
    bind: IpAddr,
}

impl Ssh {
    /// Visits all hosts, at the same time.
    ///
    /// `command` begins the command lines: `ssh`, or `ssh -F FILE`, for instance. `program` is the program
    /// on hosts that name no other.
    ///
    /// # Errors
    ///
    /// The first host of the file that cannot take part, why, and what to do about it; and which others
    /// cannot.
    pub fn visit(
        hosts: &[SshHost],
        command: Vec<OsString>,
        program: &OsStr,
    ) -> Result<Self, Error> {
        let visits = thread::scope(|scope| {
            let visit = |host| {
                let command = &command;
                scope.spawn(move || visit(host, command, program))
            };
            let visits: Vec<_> = hosts.iter().map(visit).collect();
            visits
                .into_iter()
                .map(|visit| visit.join().expect("it does not panic"))
                .collect::<Vec<_>>()
        });
        let mut failures = hosts
            .iter()
            .zip(&visits)
            .filter_map(|(host, visit)| Some((host, visit.as_ref().err()?)));
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
        Ok(Self { command, hosts: visits.into_iter().flatten().collect() })
    }

    /// Number of hosts.
    pub(super) const fn nodes(&self) -> usize {
        self.hosts.len()
    }

    /// Starts an agent for each task, each on the next one of the first `nodes` hosts.
    pub(super) fn start(&self, nodes: usize, tasks: Vec<Task>) -> Result<Crew, Error> {
        Crew::begin_all(self.hosts[..nodes].iter().cycle().zip(tasks).map(|(visited, task)| {
            let Visited { host, program, bind } = visited;
            let task = placed(task, &host.destination, *bind);
            let prefix = command_line(&self.command, host);
            let command = OsString::from(format!("exec {program}"));
            let about = visited.clone();
            let remedy = Box::new(move |status: ExitStatus, said: &str| {
                remedy(&about.host, &about.program, status, said)
            });
            let body = Embodied::process(&prefix, &command, remedy);
            (body.doing(|| format!("start {} with ssh", task.name)), task)
        }))
    }
}

/// `ssh` with everything but the command over there.
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

/// The program as a word for the shell over there, which starts in the home directory.
fn quoted(program: &OsStr) -> Result<String, String> {
    let Some(program) = program.to_str() else {
        return Err(format!(
            "the program's path {} is no text: say program=PATH",
            program.display()
        ));
    };
    // A shell would not expand what is quoted.
    let program = match program.strip_prefix("~/") {
        Some(path) => format!("./{path}"),
        None => program.to_owned(),
    };
    match shlex::try_quote(&program) {
        Ok(quoted) => Ok(quoted.into_owned()),
        Err(error) => Err(format!("the program's path cannot be said to a shell: {error}")),
    }
}

/// Asks a host for its address and the program's version.
fn visit(host: &SshHost, command: &[OsString], program: &OsStr) -> Result<Visited, String> {
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
    let reached = told(&said, &program)?;
    Ok(Visited { host: host.clone(), program, bind: host.bind.unwrap_or(reached) })
}

/// The address at which ssh reached the host, from what it said; the version must be this one's.
fn told(said: &str, program: &str) -> Result<IpAddr, String> {
    let mut lines = said.lines();
    let first = lines.next().unwrap_or_default();
    // The other end's address and port, then those of this end.
    let fields: Vec<_> = first.split(' ').collect();
    let address = match fields[..] {
        [_, _, address, port] if port.parse::<u16>().is_ok() => address.parse().ok(),
        _ => None,
    };
    let Some(address) = address else {
        return Err(format!(
            "its shell says `{}` before anything else: let its start-up files print \
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
        "{program} there says that it is `{}`, and this is version {}{commit}: install the same on all hosts",
        version.escape_debug(),
        env!("CARGO_PKG_VERSION")
    ))
}

/// Whether what a program says to `--version`, like `apus 0.1.0 (0123456789ab)`, is what this one says; who does
/// not know the commit says nothing about it.
fn is_ours(said: &str) -> bool {
    let mut words = said.split(' ').skip(1);
    let version = words.next() == Some(env!("CARGO_PKG_VERSION"));
    let commit = words.next().map(|word| word.trim_matches(['(', ')']));
    version && commit.is_none_or(|commit| commit == COMMIT || COMMIT == "unknown")
}

/// What helps against the end of a command over there.
fn remedy(host: &SshHost, program: &str, status: ExitStatus, said: &str) -> Option<String> {
    let SshHost { destination, port, .. } = host;
    let port_option = port.map(|port| format!("-p {port} ")).unwrap_or_default();
    let says = |words: &str| said.contains(words);
    match status.code()? {
        127 => Some(format!(
            "{program} is not there: install it, or say where it is with program=PATH"
        )),
        126 => Some(format!(
            "{program} cannot run there: is it a program, and for that kind of machine?"
        )),
        255 if says("Permission denied") => Some(format!(
            "nobody is there to type a password: put a key there (ssh-copy-id {port_option}{destination}), \
             and have ssh-agent know it if it has a passphrase"
        )),
        255 if says("Host key verification failed") => Some(format!(
            "its key is not the one that ssh knows: connect once by hand (ssh {port_option}{destination}) \
             and see what ssh says"
        )),
        255 if says("Could not resolve") => Some("is the name written correctly?".to_owned()),
        255 if says("refused") => {
            let port = port.unwrap_or(22);
            Some(format!("does sshd run there, at port {port}? Another port is said as HOST:PORT"))
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
    fn a_program_is_one_word_whatever_its_name() {
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
    fn a_visit_tells_the_address_and_the_version() {
        let version = env!("CARGO_PKG_VERSION");
        let told = |said: &str| told(said, "/bin/apus");
        let good = format!("10.0.0.1 5000 10.0.0.2 22\napus {version}\n");
        assert_eq!(told(&good), Ok([10, 0, 0, 2].into()));
        assert!(told(&format!("Welcome!\n{good}")).unwrap_err().contains("`Welcome!`"));
        let same = format!("10.0.0.1 5000 10.0.0.2 22\napus {version} ({COMMIT})\n");
        assert_eq!(told(&same), Ok([10, 0, 0, 2].into()));
        let other = told("::1 5000 ::1 22\napus 0.0.0\n").unwrap_err();
        assert!(other.contains("`apus 0.0.0`") && other.contains(version), "{other}");
        assert!(told("").is_err());
    }
}
