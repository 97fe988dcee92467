//! Which connections can go on?

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

/// What an event on a socket is told with.
pub(super) type Token = u64;

/// Sockets under watch.
pub(super) struct Readiness {
    epoll: OwnedFd,
    events: Vec<Event>,
}

/// What can be done with a socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub(super) token: Token,
    /// There is something to receive, or the peer is gone.
    pub(super) receive: bool,
    /// There is room to send.
    pub(super) send: bool,
}

impl Readiness {
    /// Events that one call tells at most; the others are told next time.
    const EVENTS: usize = 64;

    pub(super) fn new() -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, events: Vec::with_capacity(Self::EVENTS) })
    }

    /// Tells from now on when there is something to receive on `socket`.
    pub(super) fn watch(&self, socket: impl AsFd, token: Token) -> Result<(), Errno> {
        epoll::add(&self.epoll, socket, EventData::new_u64(token), EventFlags::IN)
    }

    /// Whether to tell when there is room to send on `socket`, too.
    pub(super) fn await_room(
        &self,
        socket: impl AsFd,
        token: Token,
        wanted: bool,
    ) -> Result<(), Errno> {
        let room = if wanted { EventFlags::OUT } else { EventFlags::empty() };
        epoll::modify(&self.epoll, socket, EventData::new_u64(token), EventFlags::IN | room)
    }

    /// What can be done now; if there is nothing, waits for it, at most for `wait`, or for ever.
    pub(super) fn poll(
        &mut self,
        wait: Option<Duration>,
    ) -> Result<impl Iterator<Item = Ready>, Errno> {
        self.events.clear();
        let wait = wait.map(|wait| Timespec::try_from(wait).expect("nobody waits that long"));
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
