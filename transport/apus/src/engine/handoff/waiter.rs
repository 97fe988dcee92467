//! A thread or task that waits until it is notified.
//!
//! # Invariants
//!
//! - **WAITER-1** A waiter is notified at most once per wait, and only under the core lock.
//! - **WAITER-2** A thread is woken exactly if it has announced that it sleeps: waking is a system
//!   call, and no thread is woken needlessly.
//! - **WAITER-3** A waiter sees the notice together with everything that the notifying thread did
//!   before: the swap in [`Waiter::notify`] releases, the load in [`Waiter::notice`] acquires.

use super::sync::{AtomicU32, Ordering, Sleeper};
use crate::engine::waiting::Spin;
use apus_trace::{Event, recorder};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

/// Reason of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The awaited result is available.
    Ready,
    /// It has the poll role.
    PollRole,
    /// Another shard has messages that its threads are not about to receive.
    Steal,
}

/// Object that a thread sleeps on, as recorded in traces ([`apus_trace::event::SLEEPS`]).
pub(crate) const SLEEPS_ON_NETWORK: u32 = 0;
const SLEEPS_ON_WAITER: u32 = 1;

/// State: it spins, or is about to sleep.
const WAITING: u32 = 0;
/// State: it has announced that it sleeps.
const ASLEEP: u32 = 1;
/// State: it was notified with [`Notice::Ready`].
const READY: u32 = 2;
/// State: it was notified with [`Notice::PollRole`].
const POLL_ROLE: u32 = 3;
/// State: it was notified with [`Notice::Steal`].
const STEAL: u32 = 4;

/// A thread or task that waits.
#[derive(Debug)]
pub(crate) struct Waiter {
    state: AtomicU32,
    kind: WaiterKind,
}

#[derive(Debug)]
enum WaiterKind {
    Thread(Sleeper),
    /// The waker of the task's last poll.
    Task(Mutex<Waker>),
}

impl Waiter {
    /// Returns the calling thread.
    pub(crate) fn thread() -> Self {
        Self { state: AtomicU32::new(WAITING), kind: WaiterKind::Thread(Sleeper::current()) }
    }

    /// Returns a task that is polled with `waker`.
    #[cfg_attr(not(feature = "tokio"), expect(dead_code, reason = "tasks need tokio"))]
    pub(crate) fn task(waker: &Waker) -> Self {
        Self { state: AtomicU32::new(WAITING), kind: WaiterKind::Task(Mutex::new(waker.clone())) }
    }

    /// Sets the waker of a task that is polled again.
    #[cfg_attr(not(feature = "tokio"), expect(dead_code, reason = "tasks need tokio"))]
    pub(crate) fn renew(&self, waker: &Waker) {
        if let WaiterKind::Task(slot) = &self.kind {
            slot.lock().unwrap_or_else(PoisonError::into_inner).clone_from(waker);
        }
    }

    /// Returns its name in traces: its address.
    pub(crate) fn name(self: &Arc<Self>) -> u64 {
        Arc::as_ptr(self) as u64
    }

    /// Starts another wait. No other thread may have a reference from the last one.
    pub(crate) fn reset(&self) {
        self.state.store(WAITING, Ordering::Relaxed);
    }

    /// Notifies it. Returns whether [`Waiter::wake`] must be called when the core lock is free.
    #[must_use]
    pub(crate) fn notify(&self, notice: Notice) -> bool {
        let value = match notice {
            Notice::Ready => READY,
            Notice::PollRole => POLL_ROLE,
            Notice::Steal => STEAL,
        };
        let before = self.state.swap(value, Ordering::AcqRel);
        debug_assert!(before == WAITING || before == ASLEEP, "WAITER-1: notified twice");
        match self.kind {
            WaiterKind::Thread(_) => before == ASLEEP,
            WaiterKind::Task(_) => true,
        }
    }

    /// Wakes it.
    pub(crate) fn wake(&self) {
        match &self.kind {
            WaiterKind::Thread(thread) => thread.wake(&self.state),
            WaiterKind::Task(waker) => {
                waker.lock().unwrap_or_else(PoisonError::into_inner).wake_by_ref();
            }
        }
    }

    /// Returns the reason of the notification, if there was one.
    pub(crate) fn notice(&self) -> Option<Notice> {
        match self.state.load(Ordering::Acquire) {
            READY => Some(Notice::Ready),
            POLL_ROLE => Some(Notice::PollRole),
            STEAL => Some(Notice::Steal),
            _ => None,
        }
    }

    /// Returns whether it was not notified.
    pub(crate) fn is_waiting(&self) -> bool {
        self.notice().is_none()
    }

    fn sleep(&self, time: Option<Duration>) {
        if let WaiterKind::Thread(thread) = &self.kind {
            let name = std::ptr::from_ref(self) as u64;
            recorder::record(Event::Sleep, SLEEPS_ON_WAITER, name);
            thread.sleep(&self.state, ASLEEP, time);
            recorder::record(Event::Wake, SLEEPS_ON_WAITER, name);
        }
    }

    /// Waits until it is notified or the deadline passes: first spins, then sleeps.
    pub(crate) fn wait(&self, mut spin: Spin, deadline: Option<Instant>) -> WaitOutcome {
        let mut waited = WaitOutcome { notice: None, slept: false, spun: 0, spurious: 0, ended: 0 };
        let notified = spin.until(deadline, || self.notice().is_some());
        waited.spun = spin.spent();
        if notified {
            waited.ended = recorder::stamp();
            waited.notice = self.notice();
            return waited;
        }
        // WAITER-2: announce the sleep, unless notified in the meantime.
        let announced =
            self.state.compare_exchange(WAITING, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
        if announced.is_err() {
            waited.notice = self.notice();
            return waited;
        }
        waited.slept = true;
        loop {
            let Some(left) = time_left(deadline) else {
                // A notice at the last moment is not lost: the caller reads it under the core lock.
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

/// The course of a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitOutcome {
    /// `None` if the deadline passed.
    pub(crate) notice: Option<Notice>,
    /// Whether the thread slept after it had spun.
    pub(crate) slept: bool,
    /// Nanoseconds of spinning, up to the last reading of the clock.
    pub(crate) spun: u64,
    /// Number of wake-ups without a notice.
    pub(crate) spurious: u64,
    /// End of the wait, in ticks of the trace; 0 if not recorded.
    pub(crate) ended: u64,
}

/// Returns the time until the deadline: `Some(None)` without one, `None` if it has passed.
#[expect(clippy::option_option, reason = "no deadline and no time left are different")]
fn time_left(deadline: Option<Instant>) -> Option<Option<Duration>> {
    match deadline {
        None => Some(None),
        Some(deadline) => {
            let left = deadline.saturating_duration_since(Instant::now());
            (!left.is_zero()).then_some(Some(left))
        }
    }
}
