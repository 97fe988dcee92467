//! How is a live process asked?

use super::folder;
use super::requests::RpcRow;
use super::tracing::TraceStatus;
use crate::snapshot::Snapshot;
use crate::trace::Trace;
use apus_local::Credentials;
use rustix::process::geteuid;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// How long an answer may take. Ours: a process answers in a millisecond, unless it is stopped.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest first line of an answer.
const MAX_HEAD: u64 = 64 * 1024;

/// A process of this user that has endpoints.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    pid: u32,
    socket: PathBuf,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder of the sockets cannot be read or trusted.
    #[error("{}: {source}", folder.display())]
    Folder {
        /// Which one.
        folder: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The process is not there, has no endpoint, or lets nobody look.
    #[error("process {pid} has no apus endpoint that can be looked at ({source})")]
    Absent {
        /// Which one.
        pid: u32,
        /// What the system says.
        source: io::Error,
    },
    /// It did not answer, or not in time.
    #[error("process {pid} did not answer: {source}")]
    Silent {
        /// Which one.
        pid: u32,
        /// What the system says.
        source: io::Error,
    },
    /// It answered that it cannot.
    #[error("process {pid}: {message}")]
    Refused {
        /// Which one.
        pid: u32,
        /// What it says.
        message: String,
    },
    /// Its answer is not what it should be: another version of apus, perhaps.
    #[error("process {pid} answered something else: {message}")]
    Strange {
        /// Which one.
        pid: u32,
        /// What is wrong with it.
        message: String,
    },
}

/// The processes of this user that have endpoints, by number. What killed ones have left is removed.
///
/// # Errors
///
/// [`Error::Folder`].
pub fn processes() -> Result<Vec<Process>, Error> {
    let folder = folder::path();
    let failed = |source: io::Error| Error::Folder { folder: folder.clone(), source };
    let own = match folder::check(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        checked => checked.map_err(failed)?,
    };
    // Nothing is removed from the folders of others.
    if own {
        folder::sweep(&folder);
    }
    let found = folder::sockets(&folder).map_err(failed)?;
    let process = |(pid, socket)| Process { pid, socket };
    Ok(found.into_iter().map(process).filter(|process| process.connect().is_ok()).collect())
}

/// The beginning of an answer.
#[derive(Deserialize)]
struct Head {
    ok: bool,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    error: String,
}

impl Process {
    /// The process with this number, whether it is there or not.
    #[must_use]
    pub fn new(pid: u32) -> Self {
        Self { pid, socket: folder::socket(&folder::path(), pid) }
    }

    /// Its number.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// All counters of all its endpoints.
    ///
    /// # Errors
    ///
    /// [`Error`]; it has ended, say.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        self.ask_for("metrics")
    }

    /// The RPCs that live there, the oldest first. Those that go through memory are not among them.
    ///
    /// # Errors
    ///
    /// As for [`Process::snapshot`].
    pub fn rpcs(&self) -> Result<Vec<RpcRow>, Error> {
        self.ask_for("rpcs")
    }

    /// Its time trace, frozen or not: the last 16 thousand records of each thread.
    ///
    /// # Errors
    ///
    /// As for [`Process::snapshot`].
    pub fn trace(&self) -> Result<Trace, Error> {
        let bytes = self.ask("trace dump")?;
        Trace::read(&mut bytes.as_slice()).map_err(|error| self.strange(&error))
    }

    /// How its time trace stands.
    ///
    /// # Errors
    ///
    /// As for [`Process::snapshot`].
    pub fn trace_status(&self) -> Result<TraceStatus, Error> {
        self.ask_for("trace status")
    }

    /// Freezes its time trace, so that what is there stays there ([`FreezeReason::Demand`](crate::trace::FreezeReason)); how
    /// that stands afterwards. If it was frozen already, the first reason stays.
    ///
    /// # Errors
    ///
    /// As for [`Process::snapshot`]; [`Error::Refused`]: tracing is off there.
    pub fn freeze_trace(&self) -> Result<TraceStatus, Error> {
        self.ask_for("trace freeze")
    }

    /// Lets it go on recording, whatever had frozen its trace; how that stands afterwards.
    ///
    /// # Errors
    ///
    /// As for [`Process::snapshot`].
    pub fn resume_trace(&self) -> Result<TraceStatus, Error> {
        self.ask_for("trace resume")
    }

    /// The answer to any request; `help` says what can be asked.
    ///
    /// # Errors
    ///
    /// As for [`Process::snapshot`].
    pub fn ask(&self, request: &str) -> Result<Vec<u8>, Error> {
        let pid = self.pid;
        let stream = self.connect().map_err(|source| Error::Absent { pid, source })?;
        let silent = |source| Error::Silent { pid, source };
        let (head, body) = exchange(&stream, request).map_err(silent)?;
        let head: Head = serde_json::from_str(&head).map_err(|error| self.strange(&error))?;
        if !head.ok {
            return Err(Error::Refused { pid, message: head.error });
        }
        if body.len() as u64 != head.bytes {
            let message = format!("{} bytes of {}", body.len(), head.bytes);
            return Err(Error::Strange { pid, message });
        }
        Ok(body)
    }

    fn ask_for<T: DeserializeOwned>(&self, request: &str) -> Result<T, Error> {
        let body = self.ask(request)?;
        serde_json::from_slice(&body).map_err(|error| self.strange(&error))
    }

    fn strange(&self, error: &impl ToString) -> Error {
        Error::Strange { pid: self.pid, message: error.to_string() }
    }

    /// Connects to it, and makes sure that it is the same user's; root may ask everybody.
    fn connect(&self) -> io::Result<UnixStream> {
        let stream = UnixStream::connect(&self.socket)?;
        let peer = Credentials::of_peer(&stream)?;
        if peer.uid != geteuid().as_raw() && !geteuid().is_root() {
            let text = format!("it is a process of user {}", peer.uid);
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }
}

/// Sends a request and reads the answer: its first line, and what is behind it.
fn exchange(mut stream: &UnixStream, request: &str) -> io::Result<(String, Vec<u8>)> {
    stream.write_all(format!("{request}\n").as_bytes())?;
    let mut answer = BufReader::new(stream);
    let mut head = String::new();
    answer.by_ref().take(MAX_HEAD).read_line(&mut head)?;
    let mut body = Vec::new();
    answer.read_to_end(&mut body)?;
    Ok((head, body))
}
