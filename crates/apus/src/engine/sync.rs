//! Which primitives does the engine synchronise with?
//!
//! The system's, or loom's when the engine is model-checked (`--cfg apus_loom`).
//!
//! A thread sleeps on a futex, not in `std::thread::park`: the token of the latter is shared by
//! everybody who parks the thread (`std::thread::scope` leaves one behind), and would end our sleep for
//! nothing.

#[cfg(not(apus_loom))]
pub(crate) use std::sync::atomic::{AtomicU32, Ordering};

#[cfg(apus_loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, Ordering};

/// The thread that sleeps.
#[derive(Debug)]
pub(crate) struct Sleeper {
    #[cfg(apus_loom)]
    thread: loom::thread::Thread,
}

#[cfg(not(apus_loom))]
impl Sleeper {
    /// The present thread.
    pub(crate) const fn current() -> Self {
        Self {}
    }

    /// Sleeps while `word` is `value`, but no longer than `time`. May return early.
    pub(crate) fn sleep(&self, word: &AtomicU32, value: u32, time: Option<std::time::Duration>) {
        use rustix::thread::futex::{Flags, Timespec, wait};

        let timeout = time.map(|time| Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time.subsec_nanos()),
        });
        // It ends when it is woken, when the word has changed, when time is up, or by a signal: the
        // caller looks at the word in any case.
        let _ = wait(word, Flags::PRIVATE, value, timeout.as_ref());
    }

    /// Ends its sleep on `word`.
    pub(crate) fn wake(&self, word: &AtomicU32) {
        let _ = rustix::thread::futex::wake(word, rustix::thread::futex::Flags::PRIVATE, 1);
    }
}

#[cfg(apus_loom)]
impl Sleeper {
    pub(crate) fn current() -> Self {
        Self { thread: loom::thread::current() }
    }

    pub(crate) fn sleep(&self, _: &AtomicU32, _: u32, _: Option<std::time::Duration>) {
        loom::thread::park();
    }

    pub(crate) fn wake(&self, _: &AtomicU32) {
        self.thread.unpark();
    }
}
