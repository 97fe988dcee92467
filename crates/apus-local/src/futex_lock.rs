//! How do processes exclude each other, for measurements?
//!
//! Nothing that pairs do takes this lock: it is there so that what one lock for all pairs costs can be measured
//! ([`super::global_registry`]). It must be a good one, or the comparison would be worth nothing. It is std's `Mutex`
//! for Linux, step by step, in memory that processes share: who finds it taken spins for a moment, and sleeps then.
//!
//! ```text
//!   free ──▶ taken ──▶ free                nobody else came
//!   taken ──▶ awaited ──▶ free, wake one   somebody did, and sleeps, or is about to
//! ```
//!
//! # Invariants
//!
//! - **F1** One at a time holds it: only who changes the word from free to something else has it. Releasing
//!   releases what was written under it, and taking acquires that.
//! - **F2** No wake-up is lost: a sleeper has made the word awaited, and sleeps only while it is. Who frees
//!   it finds that and wakes one; who was woken takes it as awaited, since others may sleep on.
//!
//! Both are checked by loom (`model`). It is not robust: if a process is killed that holds it, the others wait for
//! ever. Whoever experiments has to notice that.

use std::time::Duration;

use crate::memory::Memory;
use crate::sync::{AtomicU32, Ordering, spin_loop};

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const AWAITED: u32 = 2;

/// Looks at the word before sleeping: as many as std's.
const SPINS: u32 = if cfg!(apus_local_loom) { 1 } else { 100 };

/// The longest sleep. Nobody needs to be woken by time (F2); futexes just have one.
const LONG: Duration = Duration::from_secs(3600);

/// A lock in shared memory: four bytes.
pub(crate) struct FutexLock {
    memory: Memory,
    at: usize,
}

/// The lock, held.
pub(crate) struct Locked<'a> {
    lock: &'a FutexLock,
}

impl FutexLock {
    /// At `at`, where there must be 0 before it is used for the first time.
    pub(crate) const fn new(memory: Memory, at: usize) -> Self {
        Self { memory, at }
    }

    #[inline]
    fn word(&self) -> &AtomicU32 {
        self.memory.half(self.at)
    }

    /// The lock, if it is free.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Locked<'_>> {
        let taken = self.word().compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then(|| Locked { lock: self })
    }

    /// Waits for the lock.
    #[inline]
    pub(crate) fn lock(&self) -> Locked<'_> {
        self.try_lock().unwrap_or_else(|| {
            self.wait();
            Locked { lock: self }
        })
    }

    #[cold]
    fn wait(&self) {
        let mut seen = self.spin();
        if seen == FREE {
            let word = self.word();
            match word.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return,
                Err(found) => seen = found,
            }
        }
        loop {
            // F2: as awaited, because it is not known who else sleeps.
            if seen != AWAITED && self.word().swap(AWAITED, Ordering::Acquire) == FREE {
                return;
            }
            self.memory.sleep(self.at, AWAITED, LONG);
            seen = self.spin();
        }
    }

    /// Looks a few times whether it becomes free. Not if others sleep: they came before.
    fn spin(&self) -> u32 {
        let mut left = SPINS;
        loop {
            let seen = self.word().load(Ordering::Relaxed);
            if seen != TAKEN || left == 0 {
                return seen;
            }
            spin_loop();
            left -= 1;
        }
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        // F1, F2
        if self.lock.word().swap(FREE, Ordering::Release) == AWAITED {
            self.lock.memory.rouse_one(self.lock.at);
        }
    }
}
