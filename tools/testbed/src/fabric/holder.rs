//! Which process holds a namespace?
//!
//! `cat`, reading a pipe whose other end is here and to which nobody writes. Whatever becomes of this
//! process, the kernel closes its end of the pipe, and `cat` ends.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};

use super::identity::Process;
use super::refusal::Refusal;
use super::tool::Tool;
use crate::error::{Doing, Error};

/// What runs in a new namespace: switches off what a loaded `br_netfilter` would do to packets in the
/// switch, says that the namespace is there, and holds it.
const HOLD: &str = "for each in /proc/sys/net/bridge/bridge-nf-call-*; do
  if [ -w \"$each\" ]; then echo 0 > \"$each\"; fi
done
echo here
exec cat > /dev/null";

/// By which right namespaces are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Privilege {
    /// This process may.
    Root,
    /// It may in a user namespace, in which it is root. All namespaces of a fabric belong to the same one.
    User,
}

/// A process that holds a namespace. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Holder {
    process: Process,
    _held: Ended,
}

/// A holder that may not be there yet.
struct Starting(Ended);

/// A child that is ended, and waited for, when this is dropped.
#[derive(Debug)]
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both fail only if it has been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Privilege {
    /// Holds the first namespace, as root if possible and else in a user namespace of its own.
    pub(super) fn first() -> Result<(Self, Holder), Error> {
        if rustix::process::geteuid().is_root() {
            match Starting::new(&[], &[])?.finish() {
                Ok(holder) => return Ok((Self::Root, holder)),
                // Root in a container may have to do as everybody else does.
                Err(Error::Fabric(Refusal::NotAllowed { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        let holder = Starting::new(&[], &["--user", "--map-root-user"])?.finish()?;
        Ok((Self::User, holder))
    }

    /// Holds a namespace for each host, where the switch's belongs to.
    pub(super) fn hosts(
        self,
        number: usize,
        nsenter: &Path,
        switch: Process,
    ) -> Result<Vec<Holder>, Error> {
        let user = match self {
            Self::Root => Vec::new(),
            Self::User => command(nsenter, switch, &["--user", "--preserve-credentials"]),
        };
        // All at the same time; those that started are ended by the first error.
        let starting: Vec<_> =
            (0..number).map(|_| Starting::new(&user, &[])).collect::<Result<_, _>>()?;
        starting.into_iter().map(Starting::finish).collect()
    }

    /// What to write before a command so that it runs in a process's namespace; `nsenter` is the file.
    pub(super) fn enter(self, nsenter: &Path, holder: Process) -> Vec<OsString> {
        match self {
            Self::Root => command(nsenter, holder, &["--net"]),
            Self::User => command(nsenter, holder, &["--user", "--preserve-credentials", "--net"]),
        }
    }
}

fn command(nsenter: &Path, target: Process, namespaces: &[&str]) -> Vec<OsString> {
    let mut command = vec![nsenter.as_os_str().to_owned()];
    command.extend(["--target", &target.pid.to_string()].map(OsString::from));
    command.extend(namespaces.iter().map(OsString::from));
    command.push("--".into());
    command
}

impl Starting {
    fn new(enter: &[OsString], options: &[&str]) -> Result<Self, Error> {
        let mut words = enter.to_vec();
        words.push(Tool::Unshare.find()?.into_os_string());
        words.extend(options.iter().map(OsString::from));
        words.extend(["--net", "--", "/bin/sh", "-c", HOLD].map(OsString::from));
        let child = Command::new(&words[0])
            .args(&words[1..])
            .env("LC_ALL", "C")
            // Ctrl-C is for whoever uses the fabric, not for what holds it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .doing(|| "start unshare".to_owned())?;
        Ok(Self(Ended(child)))
    }

    /// Waits until the namespace is there.
    fn finish(mut self) -> Result<Holder, Error> {
        let mut line = String::new();
        let from_child = self.0.0.stdout.take().expect("piped when it started");
        BufReader::new(from_child).read_line(&mut line).doing(|| "hear of unshare".to_owned())?;
        if line.is_empty() {
            let mut said = String::new();
            let complaints = self.0.0.stderr.take().expect("piped when it started");
            // What could be read before an error is all there is to show.
            let _ = BufReader::new(complaints).read_to_string(&mut said);
            return Err(Error::Fabric(Refusal::NotAllowed { said: said.trim().to_owned() }));
        }
        let process = Process::of(self.0.0.id())?;
        Ok(Holder { process, _held: self.0 })
    }
}

impl Holder {
    /// The process that has to be entered.
    pub(super) const fn process(&self) -> Process {
        self.process
    }
}
