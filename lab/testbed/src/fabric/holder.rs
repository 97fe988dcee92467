//! Holders: processes that keep a namespace in existence.
//!
//! A holder is `cat` reading a pipe whose write end belongs to this process and stays unused. When
//! this process exits, for whatever reason, the kernel closes the write end and `cat` exits.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};

use super::error::FabricError;
use super::identity::Process;
use super::tool::Tool;
use apus_measure::error::{Doing, Error};

/// Script that runs in a new namespace: disables the packet filtering of a loaded `br_netfilter` in
/// the switch, reports that the namespace exists, and holds it.
const HOLD: &str = "for each in /proc/sys/net/bridge/bridge-nf-call-*; do
  if [ -w \"$each\" ]; then echo 0 > \"$each\"; fi
done
echo here
exec cat > /dev/null";

/// Privilege used to create namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Privilege {
    /// This process is privileged.
    Root,
    /// This process is root in a user namespace. All namespaces of a fabric belong to the same user
    /// namespace.
    User,
}

/// A process that holds a namespace. Dropping it kills the process.
#[derive(Debug)]
pub(super) struct Holder {
    process: Process,
    _child: KillOnDrop,
}

/// A started holder that may not be ready yet.
struct Starting(KillOnDrop);

/// A child process, killed and reaped on drop.
#[derive(Debug)]
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // Both fail only if the process has been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Privilege {
    /// Starts the holder of the first namespace, as root if possible, otherwise in a new user
    /// namespace.
    pub(super) fn first() -> Result<(Self, Holder), Error> {
        if rustix::process::geteuid().is_root() {
            match Starting::new(&[], &[])?.finish() {
                Ok(holder) => return Ok((Self::Root, holder)),
                // Root in a container may need a user namespace as well.
                Err(error)
                    if matches!(FabricError::of(&error), Some(FabricError::NotAllowed { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        let holder = Starting::new(&[], &["--user", "--map-root-user"])?.finish()?;
        Ok((Self::User, holder))
    }

    /// Starts a holder for each host, in the user namespace of the switch.
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
        // All start in parallel; the first error ends the holders that have started.
        let starting: Vec<_> =
            (0..number).map(|_| Starting::new(&user, &[])).collect::<Result<_, _>>()?;
        starting.into_iter().map(Starting::finish).collect()
    }

    /// Returns the words in front of a command that runs it in a holder's namespace; `nsenter` is
    /// the program's path.
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
            // Ctrl-C must reach the programs that use the fabric, not its holders.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .doing(|| "start unshare".to_owned())?;
        Ok(Self(KillOnDrop(child)))
    }

    /// Waits until the namespace exists.
    fn finish(mut self) -> Result<Holder, Error> {
        let mut line = String::new();
        let from_child = self.0.0.stdout.take().expect("piped when it started");
        BufReader::new(from_child)
            .read_line(&mut line)
            .doing(|| "read the output of unshare".to_owned())?;
        if line.is_empty() {
            let mut said = String::new();
            let complaints = self.0.0.stderr.take().expect("piped when it started");
            // After an error, the text read so far is all that can be shown.
            let _ = BufReader::new(complaints).read_to_string(&mut said);
            return Err(FabricError::NotAllowed { said: said.trim().to_owned() }.into());
        }
        let process = Process::of(self.0.0.id())?;
        Ok(Holder { process, _child: self.0 })
    }
}

impl Holder {
    /// Returns the process that holds the namespace.
    pub(super) const fn process(&self) -> Process {
        self.process
    }
}
