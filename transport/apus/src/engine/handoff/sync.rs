//! Primitives of synchronisation: the system's, or loom's when the engine is model-checked (`--cfg
//! apus_loom`).
//!
//! A thread sleeps on a futex, not in `std::thread::park`: the token of the latter is shared with
//! all other code that parks the thread (`std::thread::scope` leaves one behind), and would end a
//! sleep needlessly.

#[cfg(not(apus_loom))]
pub(crate) use std::sync::atomic::{AtomicU32, Ordering, fence};

#[cfg(apus_loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, Ordering, fence};

/// A thread that sleeps on a word of memory.
#[derive(Debug)]
pub(crate) struct Sleeper {
    #[cfg(apus_loom)]
    thread: loom::thread::Thread,
}

#[cfg(not(apus_loom))]
impl Sleeper {
    /// Returns the calling thread.
    pub(crate) const fn current() -> Self {
        Self {}
    }

    /// Sleeps while `word` is `value`, for up to `time`. May return early.
    pub(crate) fn sleep(&self, word: &AtomicU32, value: u32, time: Option<std::time::Duration>) {
        use rustix::thread::futex::{Flags, Timespec, wait};

        let timeout = time.map(|time| Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time.subsec_nanos()),
        });
        // The call returns when the thread is woken, the word has changed, the time is up, or a
        // signal arrives: the caller reads the word in any case.
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
