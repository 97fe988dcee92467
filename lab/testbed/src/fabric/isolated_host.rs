//! An isolated host: one namespace with a loopback interface and no other. All packets in it belong
//! to the experiment, and the process that created the namespace may capture them.

use std::ffi::OsString;
use std::path::PathBuf;

use super::holder::{Holder, Privilege};
use super::tool::Tool;
use apus_measure::error::Error;

/// An isolated host. Dropping the value removes it.
#[derive(Debug)]
pub struct IsolatedHost {
    privilege: Privilege,
    nsenter: PathBuf,
    holder: Holder,
}

impl IsolatedHost {
    /// The only interface.
    pub const INTERFACE: &'static str = "lo";

    /// Creates the namespace and its loopback interface.
    ///
    /// # Errors
    ///
    /// The user may not create namespaces, or a system program is missing. Nothing is left behind.
    pub fn up() -> Result<Self, Error> {
        let nsenter = Tool::Nsenter.find()?;
        let (privilege, holder) = Privilege::first()?;
        let host = Self { privilege, nsenter, holder };
        let line = format!("link set dev {} up\n", Self::INTERFACE);
        Tool::Ip.run("host", &host.enter(), &["-batch", "-"], &line)?;
        Ok(host)
    }

    /// Returns the words to put in front of a command that is to run in this host.
    #[must_use]
    pub fn enter(&self) -> Vec<OsString> {
        self.privilege.enter(&self.nsenter, self.holder.process())
    }
}
