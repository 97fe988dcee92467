//! A registry of all pairs of a host behind one lock.
//!
//! FreeBSD protected its local sockets like this for years; it is rebuilt here for the measurement.
//! Every send and every receive takes the **one** lock, looks its pair up, and works under the
//! lock. apus-local's own registry is never locked on the path of a message.
//!
//! The registry is in shared memory, so that it covers all processes of a host, like a kernel's. A
//! lookup reads one word in a cache line that no other pair writes: the experiment measures the
//! lock, not a slow table.
//!
//! ```text
//! 0      the lock
//! 128    the entry of the first place, 128 bytes for each
//! ```

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

use super::futex_lock::{self, AWAITED, FREE, Locked, TAKEN, Word};
use apus_bench::contenders::shared_words::SharedWords;

/// Bytes between two entries: two cache lines, since processors fetch cache lines in pairs.
const APART: usize = 128;

/// Mappings are multiples of this number of bytes.
const PAGE: usize = 4096;

/// Offset of the lock.
const LOCK: usize = 0;

/// A registry of pairs whose one lock is taken for every message.
///
/// The memory is initially zero and is freed with the last process that maps it. If a process is
/// killed while it holds the lock, the others wait forever: this is for experiments only.
pub(super) struct GlobalRegistry {
    memory: SharedWords,
    places: usize,
}

/// The entries of a [`GlobalRegistry`]; holds the lock until dropped.
pub(super) struct Entries<'a> {
    registry: &'a GlobalRegistry,
    _lock: Locked<LockWord<'a>>,
}

/// The lock's word.
struct LockWord<'a>(&'a SharedWords);

impl Word for LockWord<'_> {
    #[inline]
    fn load(&self) -> u32 {
        self.0.half(LOCK).load(Ordering::Relaxed)
    }

    #[inline]
    fn take(&self) -> Result<(), u32> {
        let word = self.0.half(LOCK);
        word.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).map(drop)
    }

    fn await_turn(&self) -> u32 {
        self.0.half(LOCK).swap(AWAITED, Ordering::Acquire)
    }

    #[inline]
    fn free(&self) -> u32 {
        self.0.half(LOCK).swap(FREE, Ordering::Release)
    }

    fn sleep(&self) {
        self.0.sleep(LOCK, AWAITED);
    }

    fn wake_one(&self) {
        self.0.wake_one(LOCK);
    }

    fn pause(&self) {
        std::hint::spin_loop();
    }
}

impl GlobalRegistry {
    /// Creates a registry of `places`, 1 to 1,000,000, all empty.
    ///
    /// # Errors
    ///
    /// The system has no memory or no descriptors left.
    pub(super) fn create(places: usize) -> io::Result<Self> {
        Ok(Self { memory: SharedWords::create("apus-registry", length(places))?, places })
    }

    /// Maps the registry of `places` that another process created. `file` is open for reading and
    /// writing.
    ///
    /// # Errors
    ///
    /// The system has no memory left, or `file` is not such a registry.
    pub(super) fn adopt(file: OwnedFd, places: usize) -> io::Result<Self> {
        Ok(Self { memory: SharedWords::adopt(file, length(places))?, places })
    }

    /// Takes the lock of the whole registry, if it is free.
    #[inline]
    pub(super) fn try_lock(&self) -> Option<Entries<'_>> {
        let lock = futex_lock::try_lock(LockWord(&self.memory))?;
        Some(Entries { registry: self, _lock: lock })
    }

    /// Waits for the lock of the whole registry.
    #[inline]
    pub(super) fn lock(&self) -> Entries<'_> {
        let lock = futex_lock::lock(LockWord(&self.memory));
        Entries { registry: self, _lock: lock }
    }
}

/// Returns the bytes of a registry of `places`.
fn length(places: usize) -> usize {
    assert!((1..=1_000_000).contains(&places), "{places} places");
    ((1 + places) * APART).next_multiple_of(PAGE)
}

impl Entries<'_> {
    /// Returns the owner of `place`; 0 for none.
    ///
    /// # Panics
    ///
    /// If there is no such place.
    #[inline]
    pub(super) fn get(&self, place: usize) -> u64 {
        self.registry.memory.word(self.at(place)).load(Ordering::Relaxed)
    }

    /// Makes `owner` the owner of `place`; 0 for none.
    ///
    /// # Panics
    ///
    /// If there is no such place.
    pub(super) fn set(&mut self, place: usize, owner: u64) {
        self.registry.memory.word(self.at(place)).store(owner, Ordering::Relaxed);
    }

    #[inline]
    fn at(&self, place: usize) -> usize {
        let places = self.registry.places;
        assert!(place < places, "place {place} of {places}");
        (1 + place) * APART
    }
}

impl AsFd for GlobalRegistry {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// Maps the registry again, as another process would.
    fn again(registry: &GlobalRegistry, places: usize) -> io::Result<GlobalRegistry> {
        GlobalRegistry::adopt(registry.as_fd().try_clone_to_owned()?, places)
    }

    /// Reading, adding one and writing are three steps: without exclusion some increments are lost.
    #[test]
    fn one_thread_at_a_time_has_the_entries() {
        const ROUNDS: u64 = 50_000;
        let registry = GlobalRegistry::create(1).unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                let registry = again(&registry, 1).unwrap();
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        let mut entries = registry.lock();
                        let count = entries.get(0);
                        entries.set(0, count + 1);
                    }
                });
            }
        });
        assert_eq!(registry.lock().get(0), 4 * ROUNDS);
    }

    #[test]
    fn a_taken_lock_is_not_taken_again() {
        let registry = GlobalRegistry::create(1).unwrap();
        let entries = registry.try_lock().expect("no other thread holds it");
        assert!(again(&registry, 1).unwrap().try_lock().is_none());
        drop(entries);
        assert!(again(&registry, 1).unwrap().try_lock().is_some());
    }

    #[test]
    fn places_are_apart_and_empty_at_first() {
        let registry = GlobalRegistry::create(100).unwrap();
        let other = again(&registry, 100).unwrap();
        assert!((0..100).all(|place| registry.lock().get(place) == 0));
        (0..100).for_each(|place| registry.lock().set(place, 7 + place as u64));
        assert!((0..100).all(|place| other.lock().get(place) == 7 + place as u64));
    }

    #[test]
    fn other_files_are_not_adopted() {
        let registry = GlobalRegistry::create(1).unwrap();
        assert!(again(&registry, 1_000).is_err(), "too short for a thousand places");
        let device = std::fs::File::options().read(true).write(true).open("/dev/zero").unwrap();
        assert!(GlobalRegistry::adopt(device.into(), 1).is_err());
    }

    #[test]
    #[should_panic(expected = "place 3 of 3")]
    fn a_missing_place_is_not_accessed() {
        let registry = GlobalRegistry::create(3).unwrap();
        let _ = registry.lock().get(3);
    }
}
