//! State of one TCP connection.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::outbox::Outbox;
use super::readiness::{Readiness, Token};
use crate::contenders::baseline::stream::buffer_pool::BufferPool;
use crate::contenders::baseline::stream::frames::Inbox;

/// Maximum bytes that one connection receives or sends before the next one is served.
///
/// Measured: on one connection, quotas of 64 KiB, 256 KiB and 1 MiB completed 58,000, 70,000 and
/// 77,000 requests of W4 a second; with one connection per request 48,000, 56,000 and 64,000. The
/// tail of short messages under the same load was no worse with the largest quota, within the noise
/// of the machine.
pub(super) const QUOTA: usize = 1 << 20;

/// A non-blocking connection.
pub(super) struct Connection {
    stream: OwnedFd,
    token: Token,
    pub(super) inbox: Inbox,
    pub(super) outbox: Outbox,
    /// Whether [`Readiness`] reports that the stream is writable.
    awaits_room: bool,
}

impl Connection {
    /// Registers `stream` with `readiness`, whose events carry `token`.
    pub(super) fn new(
        stream: impl Into<OwnedFd>,
        token: Token,
        readiness: &Readiness,
        pool: &BufferPool,
    ) -> Result<Self, Errno> {
        let stream = stream.into();
        readiness.watch(&stream, token)?;
        let (inbox, outbox) = (Inbox::new(pool.clone()), Outbox::new(pool.clone()));
        Ok(Self { stream, token, inbox, outbox, awaits_room: false })
    }

    /// Receives what is available, once. Returns `false` if the peer has closed the connection.
    pub(super) fn receive(&mut self) -> Result<bool, Errno> {
        let room = self.inbox.room();
        let quota = room.len().min(QUOTA);
        match recv(&self.stream, &mut room[..quota], RecvFlags::DONTWAIT) {
            Ok((0, _)) | Err(Errno::CONNRESET) => return Ok(false),
            Ok((count, _)) => self.inbox.received(count),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Works on each received message and returns it immediately, followed by the unsent backlog.
    /// Stops when `work` returns `false`.
    pub(super) fn answer_each(
        &mut self,
        readiness: &Readiness,
        mut work: impl FnMut() -> bool,
    ) -> Result<(), Errno> {
        let Self { stream, inbox, outbox, .. } = self;
        for frame in inbox.take().iter() {
            if !work() {
                return Ok(());
            }
            outbox.push_copy(frame);
            outbox.send(&*stream, QUOTA)?;
        }
        self.send(readiness)
    }

    /// Sends as much as the socket accepts, in one call.
    pub(super) fn send(&mut self, readiness: &Readiness) -> Result<(), Errno> {
        if !self.outbox.is_empty() {
            self.outbox.send(&self.stream, QUOTA)?;
        }
        let awaits_room = !self.outbox.is_empty();
        if awaits_room != self.awaits_room {
            readiness.await_room(&self.stream, self.token, awaits_room)?;
            self.awaits_room = awaits_room;
        }
        Ok(())
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
