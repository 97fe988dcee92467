//! What does a network look like in which there is nobody else?
//!
//! One namespace with its loopback interface and no other. What is seen there is one's own, and who made the namespace
//! may look at its packets.

use std::ffi::OsString;
use std::path::PathBuf;

use super::holder::{Holder, Privilege};
use super::tool::Tool;
use crate::error::Error;

/// A host by itself, for as long as this value lives. Dropping it removes everything.
#[derive(Debug)]
pub struct Island {
    privilege: Privilege,
    nsenter: PathBuf,
    holder: Holder,
}

impl Island {
    /// The one interface.
    pub const INTERFACE: &'static str = "lo";

    /// Makes the namespace and its loopback interface.
    ///
    /// # Errors
    ///
    /// The user may not create namespaces, or a program of the system is missing. Nothing is left behind.
    pub fn up() -> Result<Self, Error> {
        let nsenter = Tool::Nsenter.find()?;
        let (privilege, holder) = Privilege::first()?;
        let island = Self { privilege, nsenter, holder };
        let line = format!("link set dev {} up\n", Self::INTERFACE);
        Tool::Ip.run("island", &island.enter(), &["-batch", "-"], &line)?;
        Ok(island)
    }

    /// What to write before a command so that it runs there.
    #[must_use]
    pub fn enter(&self) -> Vec<OsString> {
        self.privilege.enter(&self.nsenter, self.holder.process())
    }
}
