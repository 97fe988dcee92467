//! The session: reads requests, keeps count of those that are unanswered, sends replies.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::io::Errno;

use super::buffer::RequestBuffer;
use super::device::Device;
use super::error::{ReadError, ReplyError};
use super::negotiation::{Answer, Negotiated, negotiate};
use super::notifier::Notifier;
use super::settings::SessionSettings;
use super::unanswered::Unanswered;
use crate::codec::{Init, InitFlags, Opcode, Operation, Reply, Request, RequestHeader};

/// Outcome of an attempt to read.
#[derive(Debug)]
pub enum ReadOutcome<'b> {
    /// A request for the owner.
    Request(Request<'b>),
    /// A request that the session has answered itself. There may be another one.
    Handled,
    /// There is no request at present.
    Idle,
}

/// A connection to the kernel.
#[derive(Debug)]
pub struct Session {
    device: Arc<Device>,
    settings: SessionSettings,
    negotiated: OnceLock<Negotiated>,
    unanswered: Unanswered,
    malformed: AtomicU64,
}

impl Session {
    /// Starts a session on a mounted device, as [`Mount::new`](crate::Mount::new) returns it.
    ///
    /// # Errors
    ///
    /// The errors of fcntl(2), if `device` is not a device.
    pub fn new(device: OwnedFd, settings: SessionSettings) -> Result<Self, Errno> {
        Ok(Self {
            device: Arc::new(Device::new(device)?),
            settings,
            negotiated: OnceLock::new(),
            unanswered: Unanswered::new(settings.max_unanswered),
            malformed: AtomicU64::new(0),
        })
    }

    /// Reads one request, if there is one; never waits.
    ///
    /// # Errors
    ///
    /// [`ReadError`]: the session is over.
    #[inline]
    pub fn try_read<'b>(
        &self,
        buffer: &'b mut RequestBuffer,
    ) -> Result<ReadOutcome<'b>, ReadError> {
        let length = match self.device.read(buffer.bytes_mut()) {
            Ok(Some(length)) => length,
            Ok(None) => return Ok(ReadOutcome::Idle),
            Err(Errno::NODEV) => return Err(ReadError::Unmounted),
            Err(Errno::CONNABORTED) => return Err(ReadError::Aborted),
            Err(error) => return Err(ReadError::System(error)),
        };
        self.accept(&buffer.bytes()[..length])
    }

    /// Sleeps until a message is readable, for at most `timeout`. Returns false after that time,
    /// and when a signal arrives.
    ///
    /// # Errors
    ///
    /// The errors of poll(2).
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, Errno> {
        self.device.wait(timeout)
    }

    /// Answers a request. The kernel copies the reply before this returns.
    ///
    /// # Errors
    ///
    /// [`ReplyError`]. The request counts as answered in every case.
    #[inline]
    pub fn reply(&self, unique: u64, reply: &Reply<'_>) -> Result<(), ReplyError> {
        let opcode = self.unanswered.take(unique).ok_or(ReplyError::Answered)?;
        self.send(unique, opcode, reply)
    }

    /// Answers a request with an error.
    ///
    /// # Errors
    ///
    /// [`ReplyError`]. The request counts as answered in every case.
    pub fn fail(&self, unique: u64, error: Errno) -> Result<(), ReplyError> {
        self.reply(unique, &Reply::Error(error))
    }

    /// Answers every unanswered request with an error, as before an end: their callers no longer
    /// wait.
    pub fn fail_all(&self, error: Errno) {
        for unique in self.unanswered.list() {
            // Answered by another thread in the meantime, or the connection has ended: either way,
            // no caller waits.
            let _ = self.fail(unique, error);
        }
    }

    /// Returns whether a request was read and is not answered.
    pub fn is_unanswered(&self, unique: u64) -> bool {
        self.unanswered.contains(unique)
    }

    /// Returns the numbers of the requests that were read and are not answered, in ascending order.
    pub fn unanswered(&self) -> Vec<u64> {
        self.unanswered.list()
    }

    /// Returns the negotiated parameters, once the first request was read.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.negotiated.get()
    }

    /// Returns the number of requests that could not be parsed; each was answered with EIO.
    pub fn malformed(&self) -> u64 {
        self.malformed.load(Ordering::Relaxed)
    }

    /// Returns a sender of notifications, for any thread.
    pub fn notifier(&self) -> Notifier {
        Notifier::new(Arc::clone(&self.device))
    }

    /// Handles requests that the session answers itself, and registers all others.
    fn accept<'b>(&self, bytes: &'b [u8]) -> Result<ReadOutcome<'b>, ReadError> {
        let flags = self.negotiated.get().map_or(InitFlags::empty(), |agreed| agreed.flags);
        let Ok(request) = Request::parse(bytes, flags) else {
            self.reject_malformed(bytes);
            return Ok(ReadOutcome::Handled);
        };
        let header = &request.header;
        match request.operation {
            Operation::Init(init) => {
                self.begin(header.unique, &init)?;
                return Ok(ReadOutcome::Handled);
            }
            Operation::Interrupt { unique } => {
                if !self.unanswered.contains(unique) {
                    // Another thread has read the request and not registered it yet, or has just
                    // answered it. The kernel resends the interrupt in the first case, and drops it
                    // in the second.
                    let _ = self.send(header.unique, header.opcode, &Reply::Error(Errno::AGAIN));
                    return Ok(ReadOutcome::Handled);
                }
            }
            Operation::Forget { .. } | Operation::BatchForget(_) => {}
            _ => {
                if !self.unanswered.add(header) {
                    let _ = self.send(header.unique, header.opcode, &Reply::Error(Errno::NOMEM));
                    return Ok(ReadOutcome::Handled);
                }
            }
        }
        Ok(ReadOutcome::Request(request))
    }

    /// Answers INIT.
    fn begin(&self, unique: u64, init: &Init) -> Result<(), ReadError> {
        let opcode = Opcode::Init.number();
        let sent = match negotiate(init, &self.settings) {
            Answer::Agreed(reply, negotiated) => {
                // Only the first INIT counts; the kernel sends one.
                let _ = self.negotiated.set(negotiated);
                self.send(unique, opcode, &Reply::Init(&reply))
            }
            Answer::OtherMajor(reply) => self.send(unique, opcode, &Reply::Init(&reply)),
            Answer::TooOld => {
                let _ = self.send(unique, opcode, &Reply::Error(Errno::PROTO));
                return Err(ReadError::TooOld { major: init.major, minor: init.minor });
            }
        };
        match sent {
            Err(ReplyError::Refused(error)) => Err(ReadError::System(error)),
            _ => Ok(()), // The next read reports that the connection has ended.
        }
    }

    /// Answers a request that cannot be parsed, if it has a number.
    fn reject_malformed(&self, bytes: &[u8]) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
        let Ok(header) = RequestHeader::parse(bytes) else { return };
        if Opcode::from_number(header.opcode).is_none_or(Opcode::expects_reply) {
            let _ = self.send(header.unique, header.opcode, &Reply::Error(Errno::IO));
        }
    }

    /// Sends a reply, or EIO if the kernel does not accept it (FUSE_SESSION-2).
    fn send(&self, unique: u64, opcode: u32, reply: &Reply<'_>) -> Result<(), ReplyError> {
        let failed = match reply.encode(unique, opcode) {
            Ok(message) => match self.device.write(&message) {
                Ok(()) => return Ok(()),
                Err(Errno::NOENT | Errno::NODEV) => return Err(ReplyError::Gone),
                Err(error) => ReplyError::Refused(error),
            },
            Err(error) => ReplyError::Encode(error),
        };
        if let Ok(message) = Reply::Error(Errno::IO).encode(unique, opcode) {
            let _ = self.device.write(&message);
        }
        Err(failed)
    }
}

impl AsFd for Session {
    /// Returns the device, to wait for it together with others. Level-triggered polling is needed:
    /// one message is read at a time.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
