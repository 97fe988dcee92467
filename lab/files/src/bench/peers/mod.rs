//! Peers: file systems that do the same works.
//!
//! ```text
//!   apus    serve and mount of this program
//!   local   a directory without a file service: the time of a disk in memory
//!   sshfs   with its own server
//!   given   a path with an existing mount
//! ```

mod apus;
mod given;
mod local;
mod sshfs;

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::Path;

use apus_testbed::error::Error;

pub(super) use apus::Apus;
pub(super) use given::Given;
pub(super) use local::Local;
pub(super) use sshfs::Sshfs;

use super::interrupt::Interrupt;
use super::workspace::Workspace;

/// A file system that is measured.
pub(super) trait Peer {
    /// Its name in rows.
    fn name(&self) -> &str;

    /// The directory for works.
    fn root(&self) -> &Path;

    /// Forgets everything that the client has cached, if that is possible.
    fn make_cold(&mut self) -> Result<(), Error>;

    /// Waits until every change is at the server.
    fn settle(&mut self) -> Result<(), Error>;

    /// Returns the number of calls to the server, if it is known exactly.
    fn calls(&self) -> Result<Option<u64>, Error> {
        Ok(None)
    }
}

/// The two ends of a network, and the parameters for starting peers there.
#[derive(Debug)]
pub(super) struct Site<'a> {
    /// Words in front of a command that runs at the server's end; may be empty.
    pub(super) server: Vec<OsString>,
    /// Words in front of a command that runs at the client's end; may be empty.
    pub(super) client: Vec<OsString>,
    /// The server's address.
    pub(super) address: IpAddr,
    /// The network that the server must trust; `None` if it is this host.
    pub(super) trusted: Option<String>,
    /// A name of the network, for directories.
    pub(super) name: String,
    /// Workspace for new directories.
    pub(super) workspace: &'a Workspace,
    pub(super) interrupt: &'a Interrupt,
}
