//! The client side: finds processes with endpoints, and their responses by name.

use crate::introspection::process::{Error, Process};
use crate::introspection::process_state::ProcessState;
use crate::introspection::query::{self, Query};
use crate::introspection::rpc_row::RpcRow;
use crate::introspection::sender_row::Senders;
use crate::introspection::trace_status::TraceStatus;
use crate::introspection::{exchange, folder};
use crate::snapshot::Snapshot;
use apus_trace::Trace;
use std::{fs, io};

/// Returns the processes of this user that have observable endpoints, in the order of their ids.
/// Removes the sockets of processes that were killed.
///
/// # Errors
///
/// [`Error::Folder`]: the folder of the sockets cannot be read or trusted.
pub fn processes() -> Result<Vec<Process>, Error> {
    let folder = folder::path();
    let failed = |source: io::Error| Error::Folder { folder: folder.clone(), source };
    let own = match folder::check(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        checked => checked.map_err(failed)?,
    };
    // Root does not remove anything from another user's folder.
    if own {
        folder::remove_stale(&folder);
    }
    let found = folder::sockets(&folder).map_err(failed)?;
    let processes = found.into_iter().map(|(pid, socket)| Process::at(pid, socket));
    Ok(processes.filter(exchange::is_listening).collect())
}

impl Process {
    /// Returns the counters of all endpoints of the process.
    ///
    /// # Errors
    ///
    /// [`Error`]: the process has ended, for example.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        Query::SNAPSHOT.of(self)
    }

    /// Returns the live RPCs of the process, the oldest first. Calls through shared memory are not
    /// included.
    ///
    /// # Errors
    ///
    /// [`Error`]: the process has ended, for example.
    pub fn rpcs(&self) -> Result<Vec<RpcRow>, Error> {
        Query::RPCS.of(self)
    }

    /// Returns the peers whose messages are arriving at the process over the network, sorted by
    /// outstanding bytes in descending order, at most [`Senders::MOST`].
    ///
    /// # Errors
    ///
    /// [`Error`]: the process has ended, for example. [`Error::Refused`]: its version of apus does
    /// not support the request.
    pub fn senders(&self) -> Result<Senders, Error> {
        Query::SENDERS.of(self)
    }

    /// Returns the time trace of the process, frozen or not: the last 16 thousand records of each
    /// thread.
    ///
    /// # Errors
    ///
    /// [`Error`]: the process has ended, for example.
    pub fn trace(&self) -> Result<Trace, Error> {
        Query::TRACE.of(self)
    }

    /// Returns the state of the process's time trace.
    ///
    /// # Errors
    ///
    /// [`Error`]: the process has ended, for example.
    pub fn trace_status(&self) -> Result<TraceStatus, Error> {
        Query::TRACE_STATUS.of(self)
    }

    /// Freezes the time trace of the process ([`FreezeReason::Demand`](apus_trace::FreezeReason))
    /// and returns its state afterwards. A trace that is frozen already keeps its first reason.
    ///
    /// # Errors
    ///
    /// [`Error`]: the process has ended, for example. [`Error::Refused`]: it records no trace.
    pub fn freeze_trace(&self) -> Result<TraceStatus, Error> {
        Query::FREEZE_TRACE.of(self)
    }

    /// Resumes recording, whatever has frozen the trace, and returns the state of the trace
    /// afterwards.
    ///
    /// # Errors
    ///
    /// [`Error`]: the process has ended, for example.
    pub fn resume_trace(&self) -> Result<TraceStatus, Error> {
        Query::RESUME_TRACE.of(self)
    }

    /// Sends any request and returns the body of the response. The request `help` lists all
    /// requests.
    ///
    /// # Errors
    ///
    /// [`Error`]: the process has ended, for example.
    pub fn request(&self, request: &str) -> Result<Vec<u8>, Error> {
        query::request(self, request)
    }

    /// Returns whether the process has ended, as far as the system shows it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        ProcessState::of(self.pid()) == ProcessState::Ended
    }

    /// Returns the snapshot that stands for this process if it does not respond: without counters,
    /// with the name of its program.
    #[must_use]
    pub fn unresponsive_snapshot(&self) -> Snapshot {
        let program = fs::read_link(format!("/proc/{}/exe", self.pid())).unwrap_or_default();
        let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Snapshot { pid: self.pid(), program, unresponsive: true, ..Snapshot::default() }
    }
}
