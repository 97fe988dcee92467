//! What would it cost if all pairs of a host shared one lock?
//!
//! What FreeBSD did with its local sockets for years, made again to be measured (`apus lab contention`): a registry
//! of all pairs with **one** lock, that each send and each receive takes to look its pair up and to do its work.
//! This crate's own registry is never taken on the way of a message; nothing here is used by it.
//!
//! The registry lies in memory that processes share, so that it holds for all processes of a host, as a kernel's does. To
//! look a pair up is to look at one word, in a cache line that no other pair writes: what is measured is the lock, and not
//! a table that was made slow.
//!
//! ```text
//! 0      the lock
//! 128    the entry of the first place, 128 bytes for each
//! ```

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::futex_lock::{FutexLock, Locked};
use crate::memory::Memory;
use crate::segment;
use crate::sync::Ordering;

/// Bytes between two entries: two cache lines, since processors fetch them in pairs.
const APART: usize = 128;

/// Bytes that mappings are multiples of.
const PAGE: usize = 4096;

/// A registry of pairs whose one lock is taken for every message.
///
/// The memory is 0 at first, and ends with the last process that has it. If a process is killed while it holds the
/// lock, the others wait for ever: this is for experiments.
pub struct GlobalRegistry {
    lock: FutexLock,
    memory: Memory,
    file: OwnedFd,
    places: usize,
}

/// The entries of a [`GlobalRegistry`], whose lock is held as long as this lives.
pub struct Entries<'a> {
    registry: &'a GlobalRegistry,
    _lock: Locked<'a>,
}

impl GlobalRegistry {
    /// A new one with so many places, all empty.
    ///
    /// # Errors
    ///
    /// The system has no memory or no descriptors left.
    ///
    /// # Panics
    ///
    /// If there is no place, or more than a million.
    pub fn create(places: usize) -> io::Result<Self> {
        Self::over(segment::make("apus-registry", length(places))?, places)
    }

    /// The one that another process has made with so many places. `file` is what its descriptor stands for,
    /// opened for reading and writing.
    ///
    /// # Errors
    ///
    /// The system has no memory left, or `file` is not such a registry.
    ///
    /// # Panics
    ///
    /// If there is no place, or more than a million.
    pub fn adopt(file: OwnedFd, places: usize) -> io::Result<Self> {
        if !segment::is_sound(&file, length(places))? {
            let problem = format!("no registry of {places} places");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        Self::over(file, places)
    }

    fn over(file: OwnedFd, places: usize) -> io::Result<Self> {
        let memory = Memory::map(file.as_fd(), length(places))?;
        Ok(Self { lock: FutexLock::new(memory.clone(), 0), memory, file, places })
    }

    /// The lock of the whole registry, if it is free.
    #[inline]
    #[must_use]
    pub fn try_lock(&self) -> Option<Entries<'_>> {
        self.lock.try_lock().map(|lock| Entries { registry: self, _lock: lock })
    }

    /// Waits for the lock of the whole registry.
    #[inline]
    #[must_use]
    pub fn lock(&self) -> Entries<'_> {
        let lock = self.lock.lock();
        Entries { registry: self, _lock: lock }
    }
}

/// Bytes of a registry with so many places.
fn length(places: usize) -> usize {
    assert!((1..=1_000_000).contains(&places), "{places} places");
    ((1 + places) * APART).next_multiple_of(PAGE)
}

impl Entries<'_> {
    /// Who is entered at this place: 0 for nobody.
    ///
    /// # Panics
    ///
    /// If there is no such place.
    #[inline]
    #[must_use]
    pub fn get(&self, place: usize) -> u64 {
        self.registry.memory.word(self.at(place)).load(Ordering::Relaxed)
    }

    /// Enters `who` at this place; 0 for nobody.
    ///
    /// # Panics
    ///
    /// If there is no such place.
    pub fn set(&mut self, place: usize, who: u64) {
        self.registry.memory.word(self.at(place)).store(who, Ordering::Relaxed);
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
        self.file.as_fd()
    }
}

impl std::fmt::Debug for GlobalRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GlobalRegistry").field("places", &self.places).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Entries<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Entries").field(self.registry).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// The same registry, mapped once more: as in another process.
    fn again(registry: &GlobalRegistry, places: usize) -> io::Result<GlobalRegistry> {
        GlobalRegistry::adopt(registry.file.try_clone()?, places)
    }

    /// Reading, adding one and writing are three steps: whoever is not alone loses some.
    #[test]
    fn one_at_a_time_is_at_the_entries() {
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
    fn a_lock_that_is_taken_is_not_had() {
        let registry = GlobalRegistry::create(1).unwrap();
        let entries = registry.try_lock().expect("nobody else has it");
        assert!(again(&registry, 1).unwrap().try_lock().is_none());
        drop(entries);
        assert!(again(&registry, 1).unwrap().try_lock().is_some());
    }

    #[test]
    fn places_are_apart_and_nobody_is_entered_at_first() {
        let registry = GlobalRegistry::create(100).unwrap();
        let other = again(&registry, 100).unwrap();
        assert!((0..100).all(|place| registry.lock().get(place) == 0));
        (0..100).for_each(|place| registry.lock().set(place, 7 + place as u64));
        assert!((0..100).all(|place| other.lock().get(place) == 7 + place as u64));
    }

    #[test]
    fn what_is_no_such_registry_is_not_adopted() {
        let registry = GlobalRegistry::create(1).unwrap();
        assert!(again(&registry, 1_000).is_err(), "too short for a thousand places");
        let device = std::fs::File::options().read(true).write(true).open("/dev/zero").unwrap();
        assert!(GlobalRegistry::adopt(device.into(), 1).is_err());
    }

    #[test]
    #[should_panic(expected = "place 3 of 3")]
    fn a_place_that_is_not_there_is_not_touched() {
        let registry = GlobalRegistry::create(3).unwrap();
        let _ = registry.lock().get(3);
    }
}
