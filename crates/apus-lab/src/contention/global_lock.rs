//! How does a worker write and read when all workers share one lock?

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use apus_local::{Entries, GlobalRegistry};
use serde::{Deserialize, Serialize};

use super::exchange::{Exchange, Seen};
use super::fine_grained::FineGrained;
use crate::clock;
use crate::error::{Doing, Error};

/// Where another process finds the registry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Door {
    process: u32,
    descriptor: i32,
    places: usize,
}

impl Door {
    /// For as long as this process keeps `registry`, which has so many places.
    pub(super) fn to(registry: &GlobalRegistry, places: usize) -> Self {
        let descriptor = registry.as_fd().as_raw_fd();
        Self { process: std::process::id(), descriptor, places }
    }

    fn open(&self) -> Result<GlobalRegistry, Error> {
        // The file has no name but this one, which ends with the process that made it.
        let path = format!("/proc/{}/fd/{}", self.process, self.descriptor);
        let file = File::options().read(true).write(true).open(&path);
        file.and_then(|file| GlobalRegistry::adopt(file.into(), self.places))
            .doing(|| format!("share the registry {path}"))
    }
}

/// The product's pair, under a lock that all pairs share.
pub(super) struct GlobalLock {
    registry: GlobalRegistry,
    place: usize,
    pair: FineGrained,
}

impl GlobalLock {
    /// A new pair, entered at this place of the registry.
    pub(super) fn connect(door: &Door, place: usize) -> Result<Self, Error> {
        let registry = door.open()?;
        let pair = FineGrained::connect()?;
        registry.lock().set(place, who(place));
        Ok(Self { registry, place, pair })
    }

    /// Looks the pair up in the registry, whose lock is held.
    #[inline]
    fn look_up(&self, entries: &Entries<'_>) -> Result<(), Error> {
        if entries.get(self.place) == who(self.place) {
            Ok(())
        } else {
            Err(Error::Peer(format!("no pair at place {} of the registry", self.place)))
        }
    }

    /// Does something under the lock of all, with a look at the clock before and after.
    fn watch(
        &mut self,
        seen: &mut Seen,
        work: fn(&mut FineGrained) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let asked = clock::now();
        let entries = self.registry.lock();
        let got = clock::now();
        self.look_up(&entries)?;
        work(&mut self.pair)?;
        let gave = clock::now();
        drop(entries);
        seen.waited(asked, got);
        seen.held(got, gave);
        Ok(())
    }
}

/// Whose pair it is.
const fn who(place: usize) -> u64 {
    place as u64 + 1
}

impl Exchange for GlobalLock {
    #[inline]
    fn operate(&mut self) -> Result<(), Error> {
        let entries = self.registry.lock();
        self.look_up(&entries)?;
        self.pair.send()?;
        drop(entries);
        let entries = self.registry.lock();
        self.look_up(&entries)?;
        self.pair.receive()?;
        drop(entries);
        self.pair.check()
    }

    fn observe(&mut self, seen: &mut Seen) -> Result<(), Error> {
        self.watch(seen, FineGrained::send)?;
        self.watch(seen, FineGrained::receive)?;
        self.pair.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_pair_that_is_not_in_the_registry_carries_nothing() {
        let registry = GlobalRegistry::create(2).unwrap();
        let mut pair = GlobalLock::connect(&Door::to(&registry, 2), 1).unwrap();
        pair.operate().unwrap();
        pair.observe(&mut Seen::nothing()).unwrap();
        registry.lock().set(1, 0);
        let said = pair.operate().unwrap_err().to_string();
        assert!(said.contains("no pair at place 1"), "{said}");
    }

    /// Who holds the lock finds every pair where it was: a message is written and read in full, or not at all.
    #[test]
    fn who_holds_the_lock_keeps_all_pairs_from_their_messages() {
        let registry = GlobalRegistry::create(2).unwrap();
        let door = Door::to(&registry, 2);
        let mut pairs = [0, 1].map(|place| GlobalLock::connect(&door, place).unwrap());
        thread::scope(|scope| {
            let mut entries = registry.lock();
            // From now on nobody is there. A pair that did not take the lock would not notice.
            (0..2).for_each(|place| entries.set(place, 0));
            let workers: Vec<_> = pairs
                .iter_mut()
                .map(|pair| scope.spawn(|| pair.operate().unwrap_err().to_string()))
                .collect();
            drop(entries);
            for worker in workers {
                assert!(worker.join().unwrap().contains("no pair at place"));
            }
        });
        assert!(pairs.iter_mut().all(|pair| pair.pair.receive().is_ok()));
        assert!(pairs.iter_mut().all(|pair| pair.pair.check().is_err()), "nothing was sent");
    }

    #[test]
    fn the_locks_of_both_halves_are_seen() {
        let registry = GlobalRegistry::create(1).unwrap();
        let mut pair = GlobalLock::connect(&Door::to(&registry, 1), 0).unwrap();
        let mut seen = Seen::nothing();
        (0..5).for_each(|_| pair.observe(&mut seen).unwrap());
        assert_eq!((seen.wait.len(), seen.hold.len()), (10, 10));
        seen.clear();
        assert!(seen.wait.is_empty() && seen.hold.is_empty());
    }
}
