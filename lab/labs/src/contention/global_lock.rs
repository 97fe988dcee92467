//! Pairs under one lock that every send and every receive takes.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use serde::{Deserialize, Serialize};

use super::exchange::Exchange;
use super::fine_grained::FineGrained;
use super::global_registry::{Entries, GlobalRegistry};
use super::waits::Waits;
use apus_report::stats::{Latencies, Spread};
use apus_testbed::clock;
use apus_testbed::error::{Doing, Error};

/// The address of the registry for other processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Door {
    process: u32,
    descriptor: i32,
    places: usize,
}

impl Door {
    /// Returns the address of `registry`, which has `places` places.
    pub(super) fn to(registry: &GlobalRegistry, places: usize) -> Self {
        let descriptor = registry.as_fd().as_raw_fd();
        Self { process: std::process::id(), descriptor, places }
    }

    fn open(&self) -> Result<GlobalRegistry, Error> {
        // The file has only this name, which ends with the process that created it.
        let path = format!("/proc/{}/fd/{}", self.process, self.descriptor);
        let file = File::options().read(true).write(true).open(&path);
        file.and_then(|file| GlobalRegistry::adopt(file.into(), self.places))
            .doing(|| format!("share the registry {path}"))
    }
}

/// A pair of apus, under a lock that all pairs share.
pub(super) struct GlobalLock {
    /// A private registry until the worker joins.
    registry: GlobalRegistry,
    place: usize,
    pair: FineGrained,
    waits: Waits,
    door: Door,
    place_among_all: usize,
}

/// Number of timed operations of a lone worker, and of clock readings that measure the cost of the
/// clock.
const READINGS: usize = 1000;

impl GlobalLock {
    /// Returns a new pair, which will join at this place of the registry behind `door`, and is
    /// alone until then.
    pub(super) fn connect(door: Door, place: usize) -> Result<Self, Error> {
        let registry = GlobalRegistry::create(1).doing(|| "make a registry".to_owned())?;
        registry.lock().set(0, owner(0));
        let pair = FineGrained::connect()?;
        Ok(Self { registry, place: 0, pair, waits: Waits::new(), door, place_among_all: place })
    }

    /// Looks the pair up in the locked registry.
    #[inline]
    fn look_up(&self, entries: &Entries<'_>) -> Result<(), Error> {
        if entries.get(self.place) == owner(self.place) {
            Ok(())
        } else {
            Err(Error::Peer(format!("no pair at place {} of the registry", self.place)))
        }
    }

    /// Measures the nanoseconds for which a lone worker holds the lock: the mean of writing and
    /// reading.
    fn hold(&mut self) -> Result<f64, Error> {
        let works = [FineGrained::send, FineGrained::receive as fn(&mut FineGrained) -> _];
        let mut holds = [Vec::new(), Vec::new()];
        for _ in 0..READINGS {
            for (work, holds) in works.iter().zip(&mut holds) {
                let entries = self.registry.lock();
                let acquired = clock::now();
                self.look_up(&entries)?;
                work(&mut self.pair)?;
                holds.push((clock::now() - acquired) as f64);
            }
            self.pair.check()?;
        }
        let readings = (0..READINGS).map(|_| {
            let before = clock::now();
            (clock::now() - before) as f64
        });
        let clock = Spread::over(&readings.collect::<Vec<_>>()).median;
        let median = |holds: &Vec<f64>| Spread::over(holds).median;
        Ok((holds.iter().map(median).sum::<f64>() / 2.0 - clock).max(0.0))
    }
}

/// Takes the lock; records the wait if it was taken ([`super::exchange`]).
#[inline]
fn enter<'a>(registry: &'a GlobalRegistry, waits: &mut Waits) -> Entries<'a> {
    registry.try_lock().unwrap_or_else(|| wait(registry, waits))
}

#[cold]
fn wait<'a>(registry: &'a GlobalRegistry, waits: &mut Waits) -> Entries<'a> {
    let requested = clock::now();
    let entries = registry.lock();
    waits.record(clock::now() - requested);
    entries
}

/// Returns the owner of the pair at a place.
const fn owner(place: usize) -> u64 {
    place as u64 + 1
}

impl Exchange for GlobalLock {
    #[inline]
    fn operate(&mut self) -> Result<(), Error> {
        let entries = enter(&self.registry, &mut self.waits);
        self.look_up(&entries)?;
        self.pair.send()?;
        drop(entries);
        let entries = enter(&self.registry, &mut self.waits);
        self.look_up(&entries)?;
        self.pair.receive()?;
        drop(entries);
        self.pair.check()
    }

    fn join(&mut self) -> Result<Option<f64>, Error> {
        let hold = self.hold()?;
        self.registry = self.door.open()?;
        self.place = self.place_among_all;
        self.registry.lock().set(self.place, owner(self.place));
        Ok(Some(hold))
    }

    fn waits(&mut self) -> Option<Latencies> {
        Some(self.waits.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_pair_that_is_not_in_the_registry_carries_nothing() {
        let registry = GlobalRegistry::create(2).unwrap();
        let mut pair = GlobalLock::connect(Door::to(&registry, 2), 1).unwrap();
        pair.join().unwrap();
        pair.operate().unwrap();
        registry.lock().set(1, 0);
        let said = pair.operate().unwrap_err().to_string();
        assert!(said.contains("no pair at place 1"), "{said}");
    }

    /// Under the lock every pair is consistent: a message is written and read in full, or not at
    /// all.
    #[test]
    fn a_held_lock_stops_the_messages_of_all_pairs() {
        let registry = GlobalRegistry::create(2).unwrap();
        let door = Door::to(&registry, 2);
        let mut pairs = [0, 1].map(|place| GlobalLock::connect(door.clone(), place).unwrap());
        for pair in &mut pairs {
            pair.join().unwrap();
        }
        thread::scope(|scope| {
            let mut entries = registry.lock();
            // The entries are empty now. A pair that did not take the lock would not notice.
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
    fn a_pair_is_alone_until_it_joins_the_others() {
        let registry = GlobalRegistry::create(1).unwrap();
        let mut pair = GlobalLock::connect(Door::to(&registry, 1), 0).unwrap();
        let entries = registry.lock();
        // A worker that needs this lock would wait forever.
        pair.operate().unwrap();
        assert_eq!(entries.get(0), 0);
        drop(entries);
        let hold = pair.join().unwrap().expect("the hold time is observed");
        assert!((0.0..1e9).contains(&hold), "{hold}");
        assert_eq!(registry.lock().get(0), owner(0));
    }

    #[test]
    fn only_a_taken_lock_is_waited_for() {
        let registry = GlobalRegistry::create(1).unwrap();
        let mut pair = GlobalLock::connect(Door::to(&registry, 1), 0).unwrap();
        pair.join().unwrap();
        (0..100).for_each(|_| pair.operate().unwrap());
        assert!(pair.waits().unwrap().is_empty(), "there was no other worker");
        loop {
            thread::scope(|scope| {
                let entries = registry.lock();
                scope.spawn(|| pair.operate().unwrap());
                (0..100).for_each(|_| thread::yield_now());
                drop(entries);
            });
            let waits = pair.waits().unwrap();
            // The other thread may have been late.
            if !waits.is_empty() {
                assert!(waits.len() <= 2 && waits.quantile(1.0) > 0);
                break;
            }
        }
    }
}
