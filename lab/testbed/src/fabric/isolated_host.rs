//! An isolated host: one namespace whose only interface is loopback. All packets in it belong to
//! the experiment, and the process that created the namespace may capture them.

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
    /// The user lacks the privilege to create namespaces, or a system program is missing. The
    /// system is left unchanged.
    pub fn up() -> Result<Self, Error> {
        let nsenter = Tool::Nsenter.find()?;
        let (privilege, holder) = Privilege::first()?;
        let host = Self { privilege, nsenter, holder };
        let line = format!("link set dev {} up\n", Self::INTERFACE);
        Tool::Ip.run("host", &host.enter(), &["-batch", "-"], &line)?;
        Ok(host)
    }

    /// Returns the prefix of a command that runs in this host.
    #[must_use]
    pub fn enter(&self) -> Vec<OsString> {
        self.privilege.enter(&self.nsenter, self.holder.process())
    }
}
