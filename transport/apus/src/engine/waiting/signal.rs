//! Wake-up of the leader while it sleeps in the kernel.

use crate::refusal::Named;
use apus_process::Descriptor;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use smallvec::SmallVec;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// An eventfd in addition to the driver's descriptor. It is written only for events that concern a
/// sleeper: an earlier timer, a thread that waits for the poll role, the end of the endpoint.
#[derive(Debug)]
pub(crate) struct Signal {
    event: Descriptor,
}

/// Conditions of a sleeper in addition to the signal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptors<'a> {
    /// The driver's, readable for packets, writable for room.
    pub(crate) driver: BorrowedFd<'a>,
    /// The driver's for packets that may wait, if they wake the sleeper.
    pub(crate) bulk: Option<BorrowedFd<'a>>,
    /// The doorbell of local peers.
    pub(crate) doorbell: Option<BorrowedFd<'a>>,
}

/// For which events a sleeper wakes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WakeConditions<'a> {
    /// Packets have arrived.
    pub(crate) readable: bool,
    /// The socket has room again.
    pub(crate) writable: bool,
    /// Descriptors of the application; one of them is readable.
    pub(crate) companions: &'a [BorrowedFd<'a>],
}

/// Reasons of a wake-up; none of these if the time was up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WakeReasons {
    /// The driver is readable or writable.
    pub(crate) driver: bool,
    /// A local peer has rung, and the sockets of local peers have not been polled yet.
    pub(crate) doorbell: bool,
    /// The signal was raised.
    pub(crate) signal: bool,
    /// A descriptor of the application is readable.
    pub(crate) companion: bool,
}

impl WakeReasons {
    /// The reason is not known: everything must be polled.
    pub(crate) const UNKNOWN: Self =
        Self { driver: true, doorbell: true, signal: false, companion: false };
}

impl Signal {
    /// Returns a signal that is not raised.
    ///
    /// # Errors
    ///
    /// The system grants no descriptor.
    pub(crate) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).named("eventfd")?;
        Ok(Self { event: Descriptor::new(event) })
    }

    /// Wakes the sleeper. Can fail only if the counter is full: then the sleeper wakes anyway.
    pub(crate) fn raise(&self) {
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Resets the signal.
    pub(crate) fn lower(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.event, &mut count);
    }

    /// Sleeps until one of the conditions holds for the driver's descriptor, the doorbell rings,
    /// the signal is raised, a companion is readable, or `nanos` have passed.
    ///
    /// # Errors
    ///
    /// The system's, except for interruptions.
    pub(crate) fn sleep(
        &self,
        Descriptors { driver, bulk, doorbell }: Descriptors<'_>,
        conditions: WakeConditions<'_>,
        nanos: Option<u64>,
    ) -> io::Result<WakeReasons> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, conditions.readable);
        flags.set(PollFlags::OUT, conditions.writable);
        let mut fds = SmallVec::<[PollFd<'_>; 6]>::new();
        fds.push(PollFd::new(&self.event, PollFlags::IN));
        fds.push(PollFd::from_borrowed_fd(driver, flags));
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        fds.extend(bulk.filter(|_| conditions.readable).map(readable));
        let drivers = fds.len();
        fds.extend(doorbell.filter(|_| conditions.readable).map(readable));
        let own = fds.len();
        let companions = conditions.companions.iter();
        fds.extend(companions.map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)));
        let timeout = nanos.map(timespec);
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(WakeReasons::UNKNOWN),
            Err(error) => return Err(error.into()),
        }
        let (fds, companions) = fds.split_at(own);
        let has = |fds: &[PollFd<'_>]| fds.iter().any(|fd| !fd.revents().is_empty());
        let reasons = WakeReasons {
            driver: has(&fds[1..drivers]),
            doorbell: has(&fds[drivers..]),
            signal: has(&fds[..1]),
            companion: has(companions),
        };
        if reasons.signal {
            self.lower();
        }
        Ok(reasons)
    }
}

impl AsFd for Signal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

const fn timespec(nanos: u64) -> Timespec {
    // At most a day: a thread that sleeps for longer wakes once in between.
    let nanos = if nanos > 86_400 * NANOS_PER_SECOND { 86_400 * NANOS_PER_SECOND } else { nanos };
    Timespec {
        tv_sec: (nanos / NANOS_PER_SECOND) as i64,
        tv_nsec: (nanos % NANOS_PER_SECOND) as i64,
    }
}
