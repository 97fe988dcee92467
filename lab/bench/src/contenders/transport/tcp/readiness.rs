//! Readiness of connections, reported by epoll.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

/// Number that identifies a socket in its events.
pub(super) type Token = u64;

/// An epoll instance with its sockets.
pub(super) struct Readiness {
    epoll: OwnedFd,
    events: Vec<Event>,
}

/// A ready socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub(super) token: Token,
    /// Data or the end of the connection can be received.
    pub(super) receive: bool,
    /// The socket is writable.
    pub(super) send: bool,
}

impl Readiness {
    /// Maximum events per call; further events are reported by the next call.
    const EVENTS: usize = 64;

    pub(super) fn new() -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, events: Vec::with_capacity(Self::EVENTS) })
    }

    /// Reports from now on when `socket` has something to receive.
    pub(super) fn watch(&self, socket: impl AsFd, token: Token) -> Result<(), Errno> {
        epoll::add(&self.epoll, socket, EventData::new_u64(token), EventFlags::IN)
    }

    /// Sets whether writability of `socket` is reported as well.
    pub(super) fn await_room(
        &self,
        socket: impl AsFd,
        token: Token,
        wanted: bool,
    ) -> Result<(), Errno> {
        let room = if wanted { EventFlags::OUT } else { EventFlags::empty() };
        epoll::modify(&self.epoll, socket, EventData::new_u64(token), EventFlags::IN | room)
    }

    /// Returns the ready sockets; waits for the first one for up to `wait`, or forever.
    pub(super) fn poll(
        &mut self,
        wait: Option<Duration>,
    ) -> Result<impl Iterator<Item = Ready>, Errno> {
        self.events.clear();
        let wait = wait.map(|wait| Timespec::try_from(wait).expect("a wait below 584 years"));
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), wait.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        Ok(self.events.iter().map(|event| {
            let flags = event.flags;
            Ready {
                token: event.data.u64(),
                receive: flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR),
                send: flags.contains(EventFlags::OUT),
            }
        }))
    }
}
