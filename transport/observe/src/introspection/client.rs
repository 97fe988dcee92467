//! The client side: finds processes with endpoints and sends them requests.

use crate::introspection::folder;
use crate::introspection::rpc_row::RpcRow;
use crate::introspection::sender_row::Senders;
use crate::introspection::trace_status::TraceStatus;
use crate::snapshot::Snapshot;
use apus_local::{Credentials, PeerPolicy};
use apus_trace::Trace;
use rustix::process::geteuid;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Longest time for a response. Chosen by us: a process responds within a millisecond, unless it is
/// stopped.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest first line of a response, in bytes.
const MAX_HEAD: u64 = 64 * 1024;

/// A process that may have endpoints, named by its process id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    pid: u32,
    socket: PathBuf,
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
    /// The process does not exist, has no endpoint, or none that is
    /// observable.
    #[error("process {pid} has no apus endpoint that can be inspected ({source})")]
    Absent {
        /// The process id.
        pid: u32,
        /// The error of the system.
        source: io::Error,
    },
    /// The process did not respond in time.
    #[error("process {pid} did not respond: {source}")]
    Unresponsive {
        /// The process id.
        pid: u32,
        /// The error of the system.
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
    let process = |(pid, socket)| Process { pid, socket };
    Ok(found.into_iter().map(process).filter(|process| process.connect().is_ok()).collect())
}

/// The first line of a response.
#[derive(Deserialize)]
struct Head {
    ok: bool,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    error: String,
}

impl Process {
    /// Returns the process with this id, whether it exists or not.
    #[must_use]
    pub fn new(pid: u32) -> Self {
        Self { pid, socket: folder::socket(&folder::path(), pid) }
    }

    /// Returns the process id.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the counters of all endpoints of the process.
    ///
    /// # Errors
    ///
    /// [`Error`]: the process has ended, for example.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        self.request_json("metrics")
    }

    /// Returns the live RPCs of the process, the oldest first. Calls through shared memory are not
    /// included.
    ///
    /// # Errors
    ///
    /// [`Error`]: the process has ended, for example.
    pub fn rpcs(&self) -> Result<Vec<RpcRow>, Error> {
        self.request_json("rpcs")
    }

    /// Returns the peers whose messages are arriving at the process over the network, sorted by
    /// outstanding bytes in descending order, at most [`Senders::MOST`].
    ///
    /// # Errors
    ///
    /// [`Error`]: the process has ended, for example. [`Error::Refused`]: its version of apus does
    /// not support the request.
    pub fn senders(&self) -> Result<Senders, Error> {
        self.request_json("senders")
    }

    /// Returns the time trace of the process, frozen or not: the last 16 thousand records of each
    /// thread.
    ///
    /// # Errors
    ///
    /// [`Error`]: the process has ended, for example.
    pub fn trace(&self) -> Result<Trace, Error> {
        let bytes = self.request("trace dump")?;
        Trace::read(&mut bytes.as_slice()).map_err(|error| self.invalid(&error))
    }

    /// Returns the state of the process's time trace.
    ///
    /// # Errors
    ///
    /// [`Error`]: the process has ended, for example.
    pub fn trace_status(&self) -> Result<TraceStatus, Error> {
        self.request_json("trace status")
    }

    /// Freezes the time trace of the process ([`FreezeReason::Demand`](apus_trace::FreezeReason))
    /// and returns its state afterwards. A trace that is frozen already keeps its first reason.
    ///
    /// # Errors
    ///
    /// [`Error`]: the process has ended, for example. [`Error::Refused`]: it records no trace.
    pub fn freeze_trace(&self) -> Result<TraceStatus, Error> {
        self.request_json("trace freeze")
    }

    /// Resumes recording, whatever has frozen the trace, and returns the state of the trace
    /// afterwards.
    ///
    /// # Errors
    ///
    /// [`Error`]: the process has ended, for example.
    pub fn resume_trace(&self) -> Result<TraceStatus, Error> {
        self.request_json("trace resume")
    }

    /// Sends any request and returns the body of the response. The request `help` lists all
    /// requests.
    ///
    /// # Errors
    ///
    /// [`Error`]: the process has ended, for example.
    pub fn request(&self, request: &str) -> Result<Vec<u8>, Error> {
        let pid = self.pid;
        let stream = self.connect().map_err(|source| Error::Absent { pid, source })?;
        let unresponsive = |source| Error::Unresponsive { pid, source };
        let (head, body) = exchange(&stream, request).map_err(unresponsive)?;
        let head: Head = serde_json::from_str(&head).map_err(|error| self.invalid(&error))?;
        if !head.ok {
            return Err(Error::Refused { pid, message: head.error });
        }
        if body.len() as u64 != head.bytes {
            let message = format!("{} bytes of {}", body.len(), head.bytes);
            return Err(Error::InvalidResponse { pid, message });
        }
        Ok(body)
    }

    fn request_json<T: DeserializeOwned>(&self, request: &str) -> Result<T, Error> {
        let body = self.request(request)?;
        serde_json::from_slice(&body).map_err(|error| self.invalid(&error))
    }

    fn invalid(&self, error: &impl ToString) -> Error {
        Error::InvalidResponse { pid: self.pid, message: error.to_string() }
    }

    /// Connects to the process and checks that it belongs to the same user; root may connect to any
    /// process.
    fn connect(&self) -> io::Result<UnixStream> {
        let stream = UnixStream::connect(&self.socket)?;
        let peer = Credentials::of_peer(&stream)?;
        if !PeerPolicy::SameUser.allows(peer.uid) && !geteuid().is_root() {
            let text = format!("it is a process of user {}", peer.uid);
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(stream)
    }
}

/// Sends a request and reads the response: its first line and its body.
fn exchange(mut stream: &UnixStream, request: &str) -> io::Result<(String, Vec<u8>)> {
    stream.write_all(format!("{request}\n").as_bytes())?;
    let mut response = BufReader::new(stream);
    let mut head = String::new();
    response.by_ref().take(MAX_HEAD).read_line(&mut head)?;
    let mut body = Vec::new();
    response.read_to_end(&mut body)?;
    Ok((head, body))
}
