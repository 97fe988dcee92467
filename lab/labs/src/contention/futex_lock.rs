//! A lock in memory that processes share.
//!
//! The lab's baseline: the one lock that all pairs share ([`super::global_registry`]). It must be a
//! good lock for the comparison to be fair, so it follows std's `Mutex` for Linux step by step: a
//! thread that finds the lock taken spins briefly, then sleeps.
//!
//! ```text
//!   free ──▶ taken ──▶ free                 no contention
//!   taken ──▶ awaited ──▶ free, wake one    another thread sleeps, or is about to
//! ```
//!
//! # Invariants
//!
//! - **FUTEX-1** One thread at a time holds the lock: the thread that changed the word from free. A
//!   release publishes writes under the lock to the next acquire.
//! - **FUTEX-2** No wake-up is lost: a sleeper has set the word to awaited and sleeps only while it
//!   is. The thread that frees the lock reads that and wakes one sleeper, which takes the lock as
//!   awaited, since others may still sleep.
//!
//! loom checks both (`model`). The lock is not robust: if its owner is killed, the others wait
//! forever.

pub(super) const FREE: u32 = 0;
pub(super) const TAKEN: u32 = 1;
pub(super) const AWAITED: u32 = 2;

/// Reads of the word before sleeping. Source: std's futex mutex.
const SPINS: u32 = if cfg!(apus_loom) { 1 } else { 100 };

/// The word of a lock.
pub(super) trait Word {
    /// Reads it, without ordering.
    fn load(&self) -> u32;

    /// Sets it to taken if it is free, with acquire ordering; otherwise returns its value.
    fn take(&self) -> Result<(), u32>;

    /// Sets it to awaited, with acquire ordering; returns its previous value.
    fn await_turn(&self) -> u32;

    /// Sets it to free, with release ordering; returns its previous value.
    fn free(&self) -> u32;

    /// Sleeps while it is awaited; may return early.
    fn sleep(&self);

    /// Wakes one sleeper.
    fn wake_one(&self);

    /// Pauses the processor between two reads.
    fn pause(&self);
}

/// The lock, held until this is dropped.
pub(super) struct Locked<W: Word>(W);

/// Returns the lock, if it is free.
#[inline]
pub(super) fn try_lock<W: Word>(word: W) -> Option<Locked<W>> {
    word.take().is_ok().then(|| Locked(word))
}

/// Waits for the lock.
#[inline]
pub(super) fn lock<W: Word>(word: W) -> Locked<W> {
    if word.take().is_err() {
        wait(&word);
    }
    Locked(word)
}

#[cold]
fn wait(word: &impl Word) {
    let mut seen = spin(word);
    if seen == FREE {
        match word.take() {
            Ok(()) => return,
            Err(found) => seen = found,
        }
    }
    loop {
        // FUTEX-2: taken as awaited, because other threads may sleep.
        if seen != AWAITED && word.await_turn() == FREE {
            return;
        }
        word.sleep();
        seen = spin(word);
    }
}

/// Reads the word a few times in case it becomes free. Stops if other threads sleep: they were
/// first.
fn spin(word: &impl Word) -> u32 {
    let mut left = SPINS;
    loop {
        let seen = word.load();
        if seen != TAKEN || left == 0 {
            return seen;
        }
        word.pause();
        left -= 1;
    }
}

impl<W: Word> Drop for Locked<W> {
    #[inline]
    fn drop(&mut self) {
        // FUTEX-1, FUTEX-2
        if self.0.free() == AWAITED {
            self.0.wake_one();
        }
    }
}

#[cfg(test)]
#[cfg(apus_loom)]
mod model {
    use super::*;
    use std::sync::Arc;

    use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
    use loom::sync::{Condvar, Mutex};
    use loom::thread;

    /// A word, and the kernel's queue of threads that sleep on it.
    #[derive(Clone)]
    struct Modelled(Arc<(AtomicU32, Mutex<()>, Condvar)>);

    impl Word for Modelled {
        fn load(&self) -> u32 {
            self.0.0.load(Ordering::Relaxed)
        }

        fn take(&self) -> Result<(), u32> {
            let word = &self.0.0;
            word.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).map(drop)
        }

        fn await_turn(&self) -> u32 {
            self.0.0.swap(AWAITED, Ordering::Acquire)
        }

        fn free(&self) -> u32 {
            self.0.0.swap(FREE, Ordering::Release)
        }

        fn sleep(&self) {
            let (word, bucket, sleepers) = &*self.0;
            let mut bucket = bucket.lock().unwrap();
            // A model has no time: a thread that is never woken sleeps forever, and loom reports
            // it.
            while word.load(Ordering::SeqCst) == AWAITED {
                bucket = sleepers.wait(bucket).unwrap();
            }
        }

        fn wake_one(&self) {
            drop(self.0.1.lock().unwrap());
            self.0.2.notify_one();
        }

        fn pause(&self) {
            loom::hint::spin_loop();
        }
    }

    /// Reading, adding one and writing are three steps under the lock.
    #[test]
    fn model_the_global_lock_excludes_and_wakes() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let word = Modelled(Arc::new((AtomicU32::new(FREE), Mutex::new(()), Condvar::new())));
            let count = Arc::new(AtomicU64::new(0));
            let add = |word: Modelled, count: &AtomicU64| {
                let _locked = lock(word);
                let before = count.load(Ordering::Relaxed);
                count.store(before + 1, Ordering::Relaxed);
            };
            let others: Vec<_> = (0..2)
                .map(|_| {
                    let (word, count) = (word.clone(), Arc::clone(&count));
                    thread::spawn(move || add(word, &count))
                })
                .collect();
            add(word, &count);
            others.into_iter().for_each(|other| other.join().unwrap());
            assert_eq!(count.load(Ordering::Relaxed), 3, "FUTEX-1");
        });
    }
}
