//! How is the thread that sleeps in the kernel with the turn told to look up?

use super::local::Receiver;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use smallvec::SmallVec;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// An eventfd beside the driver's descriptor. Only written when something concerns a sleeper: an
/// earlier timer, somebody who wants the turn, the end.
#[derive(Debug)]
pub(crate) struct Signal {
    event: OwnedFd,
}

/// What a sleeper wants of the driver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// That packets have arrived.
    pub(crate) readable: bool,
    /// That it has room for packets again.
    pub(crate) writable: bool,
}

/// What ended a sleep; nothing, if time was up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Woken {
    /// Something happened to the driver.
    pub(crate) driver: bool,
    /// A local peer has rung, and was not outcome to yet.
    pub(crate) doorbell: bool,
    /// The signal was raised.
    pub(crate) signal: bool,
}

impl Woken {
    /// By who knows what: everything is to be looked at.
    pub(crate) const UNKNOWN: Self = Self { driver: true, doorbell: true, signal: false };
}

impl Signal {
    pub(crate) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { event })
    }

    /// Lets the sleeper look up. Can only fail if the counter is full: then it looks up anyway.
    pub(crate) fn raise(&self) {
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Forgets that it was raised.
    pub(crate) fn lower(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.event, &mut count);
    }

    /// Sleeps until the driver is as wanted, a local peer rings, the signal is raised, or `nanos` have passed.
    ///
    /// # Errors
    ///
    /// The system's, except for interruptions.
    pub(crate) fn sleep(
        &self,
        receiver: &mut Receiver,
        wanted: Wanted,
        nanos: Option<u64>,
    ) -> io::Result<Woken> {
        if let Some(woken) = receiver.sleep_beside_pairs(self, wanted, nanos) {
            if woken.signal {
                self.lower();
            }
            return Ok(woken);
        }
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, wanted.readable);
        flags.set(PollFlags::OUT, wanted.writable);
        let (driver, doorbell) = receiver.descriptors();
        let mut fds = SmallVec::<[PollFd<'_>; 3]>::new();
        fds.push(PollFd::new(&self.event, PollFlags::IN));
        fds.push(PollFd::from_borrowed_fd(driver, flags));
        fds.extend(
            doorbell
                .filter(|_| wanted.readable)
                .map(|doorbell| PollFd::from_borrowed_fd(doorbell, PollFlags::IN)),
        );
        let timeout = nanos.map(timespec);
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Woken::UNKNOWN),
            Err(error) => return Err(error.into()),
        }
        let has = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        let woken = Woken { driver: has(1), doorbell: has(2), signal: has(0) };
        if woken.signal {
            self.lower();
        }
        Ok(woken)
    }
}

impl AsFd for Signal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

const fn timespec(nanos: u64) -> Timespec {
    // At most a day: whoever sleeps longer looks up once in between.
    let nanos = if nanos > 86_400 * NANOS_PER_SECOND { 86_400 * NANOS_PER_SECOND } else { nanos };
    Timespec {
        tv_sec: (nanos / NANOS_PER_SECOND) as i64,
        tv_nsec: (nanos % NANOS_PER_SECOND) as i64,
    }
}
