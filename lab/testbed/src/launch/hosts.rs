//! Host files: the hosts where an experiment starts agents by ssh.
//!
//! One host per line, split like a shell command: words between blanks, quotes around words with
//! blanks, `#` starts a comment.
//!
//! ```text
//! # [USER@]HOST[:PORT]  [bind=ADDRESS]  [program=PATH]
//! node1
//! node2:2222            bind=10.0.0.2
//! me@[2001:db8::3]      program=~/apus/target/release/apus-lab
//! ```
//!
//! HOST is any name that `ssh` accepts, including a `Host` of its configuration. `bind` is the
//! host's address for the other hosts, if it differs from the address that ssh connects to.
//! `program` is the path of apus on that host, if it differs from the path here. The first line is
//! the first node. A host may appear several times.

use std::net::IpAddr;
use std::str::FromStr;

use super::host_port::host_and_port;

/// One line of a host file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshHost {
    /// Line number, from 1.
    pub line: usize,
    /// Destination as `ssh` accepts it: `HOST` or `USER@HOST`.
    pub destination: String,
    /// Port of sshd; `None` uses the configuration of ssh, by default 22.
    pub port: Option<u16>,
    /// Address for connections from the other hosts; `None` uses the address that ssh connects to.
    pub bind: Option<IpAddr>,
    /// Path of the program there; `None` uses the path here. A relative path starts in the home
    /// directory.
    pub program: Option<String>,
}

/// Reason why a text is not a host file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostsError {
    /// A quote is not closed.
    #[error("line {line}: a quote is not closed")]
    Quote {
        /// Line number, from 1.
        line: usize,
    },
    /// The first word is not a host.
    #[error(
        "line {line}: `{word}` is not a host: write [USER@]HOST[:PORT], an IPv6 address in brackets"
    )]
    Host {
        /// Line number, from 1.
        line: usize,
        /// The word.
        word: String,
    },
    /// Another word is unknown.
    #[error(
        "line {line}: `{word}` is not understood: only bind=ADDRESS and program=PATH may follow the host"
    )]
    Word {
        /// Line number, from 1.
        line: usize,
        /// The word.
        word: String,
    },
    /// The value of `bind` is not an address.
    #[error("line {line}: `{word}` is not an address: write bind=10.0.0.1 or bind=2001:db8::1")]
    Bind {
        /// Line number, from 1.
        line: usize,
        /// The word.
        word: String,
    },
    /// No line names a host.
    #[error("no host in it: write one per line")]
    Empty,
}

/// Parses the text of a host file. Returns at least one host, in the order of the lines.
///
/// # Errors
///
/// The text is not a host file.
pub fn hosts(text: &str) -> Result<Vec<SshHost>, HostsError> {
    let mut hosts = Vec::new();
    for (number, text) in text.lines().enumerate() {
        let line = number + 1;
        let words = shlex::split(text).ok_or(HostsError::Quote { line })?;
        if let Some((first, rest)) = words.split_first() {
            hosts.push(host(line, first, rest)?);
        }
    }
    if hosts.is_empty() { Err(HostsError::Empty) } else { Ok(hosts) }
}

fn host(line: usize, first: &str, rest: &[String]) -> Result<SshHost, HostsError> {
    let (destination, port) =
        destination(first).ok_or_else(|| HostsError::Host { line, word: first.to_owned() })?;
    let mut host = SshHost { line, destination, port, bind: None, program: None };
    for word in rest {
        match word.split_once('=') {
            Some(("bind", address)) if host.bind.is_none() => {
                let address = IpAddr::from_str(address).ok();
                let usable = address.filter(|address| !address.is_unspecified());
                let wrong = || HostsError::Bind { line, word: word.clone() };
                host.bind = Some(usable.ok_or_else(wrong)?);
            }
            Some(("program", path)) if host.program.is_none() && !path.is_empty() => {
                host.program = Some(path.to_owned());
            }
            _ => return Err(HostsError::Word { line, word: word.clone() }),
        }
    }
    Ok(host)
}

/// Returns the destination for ssh, and the port, of `[USER@]HOST[:PORT]`; `None` for other text.
fn destination(word: &str) -> Option<(String, Option<u16>)> {
    let (user, place) = match word.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, word),
    };
    let (host, port) = host_and_port(place)?;
    // ssh would read a leading dash as an option.
    let good = |part: &str| {
        !part.is_empty() && !part.starts_with('-') && !part.contains(char::is_whitespace)
    };
    if !good(host) || !user.is_none_or(good) {
        return None;
    }
    let user = user.map(|user| format!("{user}@")).unwrap_or_default();
    Some((format!("{user}{host}"), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_host_with_its_settings() {
        let text = "# the rack on the left\n\nnode1\n  node2:2222 bind=10.0.0.2 # slow\n\
                    me@[2001:db8::3]:22 program='/opt/my apus' bind=2001:db8::4\n";
        let host =
            |line, destination: &str, port, bind: Option<&str>, program: Option<&str>| SshHost {
                line,
                destination: destination.to_owned(),
                port,
                bind: bind.map(|bind| bind.parse().unwrap()),
                program: program.map(str::to_owned),
            };
        let expected = [
            host(3, "node1", None, None, None),
            host(4, "node2", Some(2222), Some("10.0.0.2"), None),
            host(5, "me@2001:db8::3", Some(22), Some("2001:db8::4"), Some("/opt/my apus")),
        ];
        assert_eq!(hosts(text).unwrap(), expected);
    }

    #[test]
    fn an_error_names_its_line() {
        let error = |text: &str| hosts(text).unwrap_err();
        let wrong =
            ["-oProxyCommand=x", "a@-b", "@b", "a@", "h:", "h:0", "h:x", "[::1", "[h]", "[::1]2"];
        for word in wrong {
            let expected = HostsError::Host { line: 2, word: word.to_owned() };
            assert_eq!(error(&format!("node1\n{word}\n")), expected);
        }
        for word in ["slots=4", "bind", "program=", "node2"] {
            let expected = HostsError::Word { line: 1, word: word.to_owned() };
            assert_eq!(error(&format!("node1 {word}")), expected);
        }
        assert!(matches!(error("a bind=::1 bind=::1"), HostsError::Word { .. }), "twice");
        assert!(matches!(error("a bind=0.0.0.0"), HostsError::Bind { line: 1, .. }));
        assert!(matches!(error("a\nb 'c"), HostsError::Quote { line: 2 }));
        assert_eq!(error("# no host\n"), HostsError::Empty);
        assert_eq!(
            error("a\nb x").to_string(),
            "line 2: `x` is not understood: only bind=ADDRESS and program=PATH may follow the host"
        );
    }
}
