//! How does a worker write and read when all workers share one lock?

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use apus_local::{Entries, GlobalRegistry};
use serde::{Deserialize, Serialize};

use super::exchange::{Exchange, Look, Seen};
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
    /// At first one of its own.
    registry: GlobalRegistry,
    place: usize,
    pair: FineGrained,
    door: Door,
    place_among_all: usize,
}

impl GlobalLock {
    /// A new pair, which is to come to this place of the registry behind `door`, and is by itself before.
    pub(super) fn connect(door: Door, place: usize) -> Result<Self, Error> {
        let registry = GlobalRegistry::create(1).doing(|| "make a registry".to_owned())?;
        registry.lock().set(0, who(0));
        let pair = FineGrained::connect()?;
        Ok(Self { registry, place: 0, pair, door, place_among_all: place })
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

    /// Does something under the lock of all. When it was had, and when it was about to be let go.
    #[inline]
    fn timed(
        &mut self,
        work: fn(&mut FineGrained) -> Result<(), Error>,
    ) -> Result<(u64, u64), Error> {
        let entries = self.registry.lock();
        let got = clock::now();
        self.look_up(&entries)?;
        work(&mut self.pair)?;
        // Under the lock: who looks at the clock without it lets others come first.
        let giving = clock::now();
        drop(entries);
        Ok((got, giving))
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

    fn observe(&mut self, seen: &mut Seen) -> Result<u64, Error> {
        let (wrote, writing) = self.timed(FineGrained::send)?;
        let (read, reading) = self.timed(FineGrained::receive)?;
        self.pair.check()?;
        let (again, now) = self.timed(FineGrained::send)?;
        self.timed(FineGrained::receive)?;
        self.pair.check()?;
        let waits = [read - writing, again - reading];
        seen.note(Look { waits, holds: [writing - wrote, reading - read] });
        Ok(now)
    }

    fn join(&mut self) -> Result<(), Error> {
        self.registry = self.door.open()?;
        self.place = self.place_among_all;
        self.registry.lock().set(self.place, who(self.place));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::exchange::Alone;
    use super::*;
    use std::thread;

    #[test]
    fn a_pair_that_is_not_in_the_registry_carries_nothing() {
        let registry = GlobalRegistry::create(2).unwrap();
        let mut pair = GlobalLock::connect(Door::to(&registry, 2), 1).unwrap();
        pair.join().unwrap();
        pair.operate().unwrap();
        pair.observe(&mut Seen::default()).unwrap();
        registry.lock().set(1, 0);
        let said = pair.operate().unwrap_err().to_string();
        assert!(said.contains("no pair at place 1"), "{said}");
    }

    /// Who holds the lock finds every pair where it was: a message is written and read in full, or not at all.
    #[test]
    fn who_holds_the_lock_keeps_all_pairs_from_their_messages() {
        let registry = GlobalRegistry::create(2).unwrap();
        let door = Door::to(&registry, 2);
        let mut pairs = [0, 1].map(|place| GlobalLock::connect(door.clone(), place).unwrap());
        pairs.iter_mut().for_each(|pair| pair.join().unwrap());
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
    fn a_pair_is_by_itself_until_it_joins_the_others() {
        let registry = GlobalRegistry::create(1).unwrap();
        let mut pair = GlobalLock::connect(Door::to(&registry, 1), 0).unwrap();
        let entries = registry.lock();
        // Whoever wanted this lock would wait for ever.
        pair.operate().unwrap();
        let alone = Alone::watch(&mut pair).unwrap();
        assert_eq!(entries.get(0), 0);
        drop(entries);
        pair.join().unwrap();
        assert_eq!(registry.lock().get(0), who(0));
        let mut seen = Seen::default();
        for _ in 0..5 {
            pair.observe(&mut seen).unwrap();
        }
        let [wait, hold] = seen.latencies(&alone);
        assert_eq!((wait.len(), hold.len()), (10, 10));
    }
}
