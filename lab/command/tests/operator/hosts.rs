//! Two hosts with a link between them, as namespaces of this machine.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use apus_testbed::Error;
use apus_testbed::fabric::{Fabric, Spec};

/// The hosts, removed when this value is dropped.
pub(crate) struct Hosts(Fabric);

impl Hosts {
    /// Builds the hosts. Returns `None`, with a message, if this machine does not allow it.
    pub(crate) fn up() -> Option<Self> {
        match Fabric::up(&Spec { nodes: 2, ..Spec::default() }) {
            Ok(fabric) => Some(Self(fabric)),
            Err(error @ Error::Unavailable { is_final: true, .. }) => {
                eprintln!("SKIPPED: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns a command that runs `words` in a host: 0 has the address 10.77.0.1, and 1 has
    /// 10.77.0.2.
    pub(crate) fn command(&self, host: usize, words: &str) -> Command {
        let mut all = self.0.enter(host);
        all.extend(words.split(' ').map(OsString::from));
        let mut command = Command::new(&all[0]);
        command.args(&all[1..]).stdin(Stdio::null());
        command
    }
}
