//! Locks with a fixed order.
//!
//! **Registry, then pairs in the order of their numbers; within one pair, the receiving half before
//! the sending half.** A pair's number is assigned at creation and never changes, like the address
//! by which kernels order sockets. This crate never holds locks of two pairs; the order exists for
//! code that may need it later.
//!
//! Debug builds record the locks that each thread holds, and panic when a lock is taken out of
//! order or twice.

use std::sync::{PoisonError, TryLockError};

use crate::sync::{Mutex, MutexGuard};

/// Position of a lock in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// Handshakes that are not complete. Before the registry; no other lock is taken under it.
    Handshakes,
    /// Before all pairs.
    Registry,
    /// The receiving half (0) or the sending half (1) of the pair with this number.
    Pair(u64, u8),
}

impl Rank {
    pub(crate) const fn receiving(pair: u64) -> Self {
        Self::Pair(pair, 0)
    }

    pub(crate) const fn sending(pair: u64) -> Self {
        Self::Pair(pair, 1)
    }
}

/// A mutex with a position in the order.
pub(crate) struct Lock<T> {
    rank: Rank,
    mutex: Mutex<T>,
}

/// A held lock.
pub(crate) struct LockGuard<'a, T> {
    guard: MutexGuard<'a, T>,
    _order: order::HeldLock,
}

impl<T> Lock<T> {
    pub(crate) fn new(rank: Rank, value: T) -> Self {
        Self { rank, mutex: Mutex::new(value) }
    }

    /// Waits for the lock.
    ///
    /// # Panics
    ///
    /// In debug builds, if the thread already holds this lock or a later one.
    #[inline]
    pub(crate) fn lock(&self) -> LockGuard<'_, T> {
        let order = order::enter(self.rank);
        LockGuard { guard: self.lock_mutex(), _order: order }
    }

    #[inline]
    fn lock_mutex(&self) -> MutexGuard<'_, T> {
        if cfg!(apus_local_loom) {
            // A second way to take a lock would only multiply the interleavings of a model.
            return self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        }
        match self.mutex.try_lock() {
            Ok(guard) => guard,
            // A panic under the lock was a bug of this crate and has been printed; the other pairs
            // continue.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => self.wait(),
        }
    }

    #[cold]
    fn wait(&self) -> MutexGuard<'_, T> {
        let since = std::time::Instant::now();
        let guard = self.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        misses::count(since.elapsed());
        guard
    }
}

impl<T> std::fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Lock").field(&self.rank).finish()
    }
}

impl<T> std::ops::Deref for LockGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> std::ops::DerefMut for LockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

#[cfg(all(debug_assertions, not(apus_local_loom)))]
mod order {
    use super::Rank;
    use std::cell::RefCell;

    thread_local! {
        static HELD: RefCell<Vec<Rank>> = const { RefCell::new(Vec::new()) };
    }

    /// Removes the lock from the list when it is released.
    pub(super) struct HeldLock(Rank);

    pub(super) fn enter(rank: Rank) -> HeldLock {
        HELD.with_borrow_mut(|held| {
            let last = held.iter().max().copied();
            assert!(last.is_none_or(|last| last < rank), "lock order: {rank:?} after {last:?}");
            held.push(rank);
        });
        HeldLock(rank)
    }

    impl Drop for HeldLock {
        fn drop(&mut self) {
            HELD.with_borrow_mut(|held| {
                let at = held.iter().rposition(|rank| *rank == self.0);
                held.remove(at.expect("a held lock is in the list"));
            });
        }
    }
}

#[cfg(not(all(debug_assertions, not(apus_local_loom))))]
mod order {
    pub(super) struct HeldLock;

    #[inline]
    pub(super) const fn enter(_: super::Rank) -> HeldLock {
        HeldLock
    }
}

/// Contended lock operations of this crate, in this process since it started: of the locks of all
/// pairs and registries. A lock without contention has no extra cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockMisses {
    /// Number of times that a thread found a lock taken.
    pub count: u64,
    /// Total time that threads waited for locks.
    pub waited: std::time::Duration,
}

impl LockMisses {
    /// Returns the counts since the process started.
    #[must_use]
    pub fn so_far() -> Self {
        misses::so_far()
    }
}

mod misses {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::LockMisses;

    static COUNT: AtomicU64 = AtomicU64::new(0);
    static NANOSECONDS: AtomicU64 = AtomicU64::new(0);

    pub(super) fn count(waited: Duration) {
        COUNT.fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        NANOSECONDS.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    pub(super) fn so_far() -> LockMisses {
        let waited = Duration::from_nanos(NANOSECONDS.load(Ordering::Relaxed));
        LockMisses { count: COUNT.load(Ordering::Relaxed), waited }
    }
}

#[cfg(all(test, not(apus_local_loom)))]
mod contention_tests {
    use super::*;
    use std::thread;

    /// Other tests may contend for locks at the same time.
    #[test]
    fn a_contended_lock_is_counted() {
        let lock = Lock::new(Rank::Registry, ());
        loop {
            let before = LockMisses::so_far();
            thread::scope(|scope| {
                let held = lock.lock();
                scope.spawn(|| drop(lock.lock()));
                (0..100).for_each(|_| thread::yield_now());
                drop(held);
            });
            let after = LockMisses::so_far();
            if after.count > before.count {
                assert!(after.waited > before.waited);
                return;
            }
        }
    }
}

#[cfg(all(test, debug_assertions, not(apus_local_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_registry_then_pairs_by_number() {
        let registry = Lock::new(Rank::Registry, ());
        let [one, two] = [1, 2].map(|pair| Lock::new(Rank::receiving(pair), ()));
        let sending = Lock::new(Rank::sending(1), ());
        let held = (registry.lock(), one.lock(), sending.lock(), two.lock());
        drop(held);
        drop((two.lock(), ()));
        drop(one.lock());
    }

    #[test]
    #[should_panic(expected = "lock order: Registry after Some(Pair(1, 0))")]
    fn taking_the_registry_after_a_pair_panics() {
        let (registry, pair) = (Lock::new(Rank::Registry, ()), Lock::new(Rank::receiving(1), ()));
        let _pair = pair.lock();
        let _registry = registry.lock();
    }

    #[test]
    #[should_panic(expected = "lock order: Pair(1, 0) after Some(Pair(1, 1))")]
    fn taking_the_receiving_half_after_the_sending_half_panics() {
        let [receiving, sending] = [Rank::receiving(1), Rank::sending(1)].map(|r| Lock::new(r, ()));
        let _sending = sending.lock();
        let _receiving = receiving.lock();
    }

    #[test]
    #[should_panic(expected = "lock order")]
    fn taking_a_lock_twice_panics_instead_of_blocking() {
        let lock = Lock::new(Rank::Registry, ());
        let _once = lock.lock();
        let _twice = lock.lock();
    }
}
