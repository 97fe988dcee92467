//! A process that may have endpoints, and the reasons why it cannot be inspected.

use crate::introspection::folder;
use std::io;
use std::path::{Path, PathBuf};

/// A process that may have endpoints, named by its process id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    pid: u32,
    socket: PathBuf,
}

impl Process {
    /// Returns the process with this id, whether it exists or not.
    #[must_use]
    pub fn new(pid: u32) -> Self {
        Self::at(pid, folder::socket(&folder::path(), pid))
    }

    /// Returns the process with this id and socket.
    pub(super) const fn at(pid: u32, socket: PathBuf) -> Self {
        Self { pid, socket }
    }

    /// Returns the process id.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the path of its socket.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }
}

/// The reason why a process could not be inspected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder of the sockets cannot be read, or cannot be trusted.
    #[error("{}: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The process does not exist, has no endpoint, or none that is observable.
    #[error("process {pid} has no apus endpoint that can be inspected ({source})")]
    Absent {
        /// The process id.
        pid: u32,
        /// The error of the system.
        source: io::Error,
    },
    /// The process has ended before its response was complete.
    #[error("process {pid} has ended")]
    Ended {
        /// The process id.
        pid: u32,
    },
    /// The process did not respond in time: it is stopped, for example.
    #[error("process {pid} does not respond: {source}")]
    Unresponsive {
        /// The process id.
        pid: u32,
        /// The probable cause.
        source: io::Error,
    },
    /// The process refused the request.
    #[error("process {pid}: {message}")]
    Refused {
        /// The process id.
        pid: u32,
        /// The reason that the process gave.
        message: String,
    },
    /// The response cannot be parsed; the process may run another version of apus.
    #[error("invalid response of process {pid}: {message}")]
    InvalidResponse {
        /// The process id.
        pid: u32,
        /// Description of the invalid part.
        message: String,
    },
}
