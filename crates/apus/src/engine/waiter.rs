//! How does a thread or a task wait until it is told something?
//!
//! # Invariants
//!
//! - **W1** A waiter is told at most once per wait, and only by whoever holds the core lock.
//! - **W2** A thread is roused exactly if it had announced that it would sleep: rousing is a system
//!   call, and nobody is roused for nothing.
//! - **W3** What was told is seen by the waiter together with everything the teller did before (the
//!   swap in [`Waiter::notify`] releases, the loads in [`Waiter::notice`] acquire).

use super::poll_mode::Spin;
use super::sync::{AtomicU32, Ordering, Sleeper};
use apus_trace::{Event, recorder};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::{Duration, Instant};

/// What a waiter is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// What it waits for is there.
    Ready,
    /// It has the turn now.
    PollRole,
}

/// What threads sleep on, as traces say it ([`apus_trace::event::SLEEPS`]).
pub(super) const SLEEPS_ON_NETWORK: u32 = 0;
const SLEEPS_ON_WAITER: u32 = 1;

/// It spins, or is about to sleep.
const WAITING: u32 = 0;
/// It has announced that it sleeps.
const ASLEEP: u32 = 1;
const READY: u32 = 2;
const POLL_ROLE: u32 = 3;

/// Somebody who waits.
#[derive(Debug)]
pub(crate) struct Waiter {
    state: AtomicU32,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Thread(Sleeper),
    /// The waker of the task's last poll.
    Task(Mutex<Waker>),
}

impl Waiter {
    /// The present thread.
    pub(crate) fn thread() -> Self {
        Self { state: AtomicU32::new(WAITING), kind: Kind::Thread(Sleeper::current()) }
    }

    /// A task that is polled with `waker`.
    #[cfg_attr(not(feature = "tokio"), expect(dead_code, reason = "tasks are there with tokio"))]
    pub(crate) fn task(waker: &Waker) -> Self {
        Self { state: AtomicU32::new(WAITING), kind: Kind::Task(Mutex::new(waker.clone())) }
    }

    /// A task is polled again, perhaps with another waker.
    #[cfg_attr(not(feature = "tokio"), expect(dead_code, reason = "tasks are there with tokio"))]
    pub(crate) fn renew(&self, waker: &Waker) {
        if let Kind::Task(slot) = &self.kind {
            let mut slot = slot.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            slot.clone_from(waker);
        }
    }

    /// What it is called in traces: its address.
    pub(crate) fn name(self: &Arc<Self>) -> u64 {
        Arc::as_ptr(self) as u64
    }

    /// Begins another wait. Nobody may hold a reference from the last one.
    pub(crate) fn reset(&self) {
        self.state.store(WAITING, Ordering::Relaxed);
    }

    /// Tells it something; whether [`Waiter::wake`] must be called, once the core lock is free.
    #[must_use]
    pub(crate) fn notify(&self, notice: Notice) -> bool {
        let value = match notice {
            Notice::Ready => READY,
            Notice::PollRole => POLL_ROLE,
        };
        let before = self.state.swap(value, Ordering::AcqRel);
        debug_assert!(before == WAITING || before == ASLEEP, "W1: told twice");
        match self.kind {
            Kind::Thread(_) => before == ASLEEP,
            Kind::Task(_) => true,
        }
    }

    /// Lets it run.
    pub(crate) fn wake(&self) {
        match &self.kind {
            Kind::Thread(thread) => thread.wake(&self.state),
            Kind::Task(waker) => {
                waker.lock().unwrap_or_else(std::sync::PoisonError::into_inner).wake_by_ref();
            }
        }
    }

    /// What it was told, if anything yet.
    pub(crate) fn notice(&self) -> Option<Notice> {
        match self.state.load(Ordering::Acquire) {
            READY => Some(Notice::Ready),
            POLL_ROLE => Some(Notice::PollRole),
            _ => None,
        }
    }

    /// Whether it has not been told anything.
    pub(crate) fn is_waiting(&self) -> bool {
        self.notice().is_none()
    }

    fn sleep(&self, time: Option<Duration>) {
        if let Kind::Thread(thread) = &self.kind {
            let name = std::ptr::from_ref(self) as u64;
            recorder::record(Event::Sleep, SLEEPS_ON_WAITER, name);
            thread.sleep(&self.state, ASLEEP, time);
            recorder::record(Event::Wake, SLEEPS_ON_WAITER, name);
        }
    }

    /// Waits: spins first, as long as the policy says, and sleeps then. `None` when the deadline
    /// passes. Returns how often the thread was woken for nothing.
    pub(crate) fn wait(&self, mut spin: Spin, deadline: Option<Instant>) -> Waited {
        let mut waited = Waited { notice: None, slept: false, spun: 0, spurious: 0, ended: 0 };
        let told = spin.until(deadline, || self.notice().is_some());
        waited.spun = spin.spent();
        if told {
            waited.ended = recorder::stamp();
            waited.notice = self.notice();
            return waited;
        }
        // W2: announce, unless something has been told meanwhile.
        let announced =
            self.state.compare_exchange(WAITING, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
        if announced.is_err() {
            waited.notice = self.notice();
            return waited;
        }
        waited.slept = true;
        loop {
            let Some(left) = time_left(deadline) else {
                // Notice at the last moment, or not: the caller looks again under the core lock.
                let _ = self.state.compare_exchange(
                    ASLEEP,
                    WAITING,
                    Ordering::AcqRel,
                    Ordering::Acquire,
                );
                waited.notice = self.notice();
                return waited;
            };
            self.sleep(left);
            waited.ended = recorder::stamp();
            waited.notice = self.notice();
            if waited.notice.is_some() {
                return waited;
            }
            waited.spurious += u64::from(time_left(deadline).is_some());
        }
    }
}

/// How a wait went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waited {
    pub(crate) notice: Option<Notice>,
    /// Whether the thread slept, and did not only spin.
    pub(crate) slept: bool,
    /// Nanoseconds for which it spun, as far as it has looked at the clock.
    pub(crate) spun: u64,
    /// Returns from sleep without having been told anything.
    pub(crate) spurious: u64,
    /// When it was told, in ticks of the trace; 0 if nothing is recorded.
    pub(crate) ended: u64,
}

/// Time until the deadline: `Some(None)` without one, `None` if it has passed.
#[expect(clippy::option_option, reason = "no deadline and none left are different things")]
fn time_left(deadline: Option<Instant>) -> Option<Option<Duration>> {
    match deadline {
        None => Some(None),
        Some(deadline) => {
            let left = deadline.saturating_duration_since(Instant::now());
            (!left.is_zero()).then_some(Some(left))
        }
    }
}
