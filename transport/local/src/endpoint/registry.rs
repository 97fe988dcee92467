//! Registry of pairs: lookup, and the races between connecting, removing and closing.
//!
//! The registry has one lock, taken to look up, add and remove a pair; never to send or to receive:
//! a receiver from all pairs has its own list ([`Snapshot`]), which it renews when a counter has
//! changed.
//!
//! # Locking protocol
//!
//! - **Protected state**: the entries, and whether the registry is closed. `generation` is written
//!   under the lock (release) and read without it (acquire): a reader that sees the old number has
//!   a list that was right a moment ago.
//! - **References**: the registry holds one to each pair, every snapshot one, and every caller that
//!   received one. A pair is unmapped when the last is dropped; a removed pair can merely no longer
//!   be found.
//! - **Order**: registry, then pairs by number (`lock`). No pair is locked under this lock: pairs
//!   are closed after it was released ([`Registry::close`]).
//! - **Checks after the lock was released**, because connecting makes system calls and must not run
//!   under it:
//! - [`Registry::fulfil`] checks that the registry is still open and still contains the
//!   reservation. In the meantime the peer may have connected or been removed, or the endpoint
//!   closed. In these cases the new pair is returned, and the caller closes it.
//!   - [`Registry::remove`] checks that the key still belongs to the same pair.
//!   - [`Registry::abandon`] checks that the reservation still exists.
//!
//! # Invariants
//!
//! - **REGISTRY-1** A pair that was added can be found, or was returned by [`Registry::close`], or
//!   removed: none is lost between connecting and closing.
//! - **REGISTRY-2** Each key has at most one pair, or one reservation.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use crate::lock::{Lock, LockGuard, Rank};
use crate::sync::{AtomicU64, Ordering};

/// All pairs of an endpoint, by key.
pub(crate) struct Registry<K, P> {
    entries: Lock<Entries<K, P>>,
    /// Grows whenever a pair is added or removed.
    generation: AtomicU64,
    max: usize,
}

struct Entries<K, P> {
    map: HashMap<K, PeerEntry<P>>,
    closed: bool,
    /// Number of the next reservation.
    next: u64,
}

enum PeerEntry<P> {
    /// A thread connects.
    Reserved(u64),
    Connected(Arc<P>),
}

/// The exclusive right to connect to a peer. It must end with [`Registry::fulfil`] or
/// [`Registry::abandon`].
#[derive(Debug)]
#[must_use = "no other thread can connect to this peer meanwhile"]
pub(crate) struct Reservation<K> {
    key: K,
    number: u64,
}

impl<K: Eq> Reservation<K> {
    /// Returns whether the reservation is for `key`.
    pub(crate) fn is_for(&self, key: &K) -> bool {
        self.key == *key
    }
}

/// Result of [`Registry::find_or_reserve`].
#[derive(Debug)]
pub(crate) enum Found<K, P> {
    /// The pair.
    Pair(Arc<P>),
    /// There is no pair; the caller must connect.
    Reserved(Reservation<K>),
    /// Another thread connects.
    Connecting,
    /// The registry has reached its maximum.
    Full,
    /// The registry is closed.
    Closed,
}

/// Result of [`Registry::get`].
#[derive(Debug)]
pub(crate) enum Presence<P> {
    /// The pair.
    Pair(Arc<P>),
    /// A thread connects.
    Connecting,
    /// Neither a pair nor a reservation.
    Absent,
}

/// Why a pair was not added.
#[derive(Debug)]
pub(crate) enum AddError<P> {
    /// The registry has reached its maximum. Returns the pair.
    Full(Arc<P>),
    /// The registry is closed, or the reservation was abandoned. Returns the pair.
    Closed(Arc<P>),
}

/// All pairs at some moment.
#[derive(Debug)]
pub(crate) struct Snapshot<P> {
    generation: u64,
    /// Shared with the pair's events.
    pairs: Arc<[Arc<P>]>,
}

impl<P> Default for Snapshot<P> {
    fn default() -> Self {
        // No registry has this number, so the first poll renews the list.
        Self { generation: u64::MAX, pairs: Arc::default() }
    }
}

impl<P> Snapshot<P> {
    /// Returns the pairs, in unspecified order.
    #[must_use]
    pub(crate) const fn pairs(&self) -> &Arc<[Arc<P>]> {
        &self.pairs
    }
}

impl<K: Clone + Eq + Hash, P> Registry<K, P> {
    /// Returns an empty registry for up to `max` pairs.
    #[must_use]
    pub(crate) fn new(max: usize) -> Self {
        let entries = Entries { map: HashMap::new(), closed: false, next: 0 };
        Self { entries: Lock::new(Rank::Registry, entries), generation: AtomicU64::new(0), max }
    }

    /// Returns the pair for `key`, or reserves the right to connect.
    pub(crate) fn find_or_reserve(&self, key: &K) -> Found<K, P> {
        let mut entries = self.entries.lock();
        if entries.closed {
            return Found::Closed;
        }
        match entries.map.get(key) {
            Some(PeerEntry::Connected(pair)) => return Found::Pair(pair.clone()),
            Some(PeerEntry::Reserved(_)) => return Found::Connecting,
            None if entries.map.len() >= self.max => return Found::Full,
            None => {}
        }
        let number = entries.next;
        entries.next += 1;
        entries.map.insert(key.clone(), PeerEntry::Reserved(number));
        Found::Reserved(Reservation { key: key.clone(), number })
    }

    /// Returns the pair for `key`, if there is one, without a reservation.
    pub(crate) fn get(&self, key: &K) -> Presence<P> {
        match self.entries.lock().map.get(key) {
            Some(PeerEntry::Connected(pair)) => Presence::Pair(pair.clone()),
            Some(PeerEntry::Reserved(_)) => Presence::Connecting,
            None => Presence::Absent,
        }
    }

    /// Adds the pair for a reservation.
    ///
    /// # Errors
    ///
    /// [`AddError`] if the registry was closed or the reservation abandoned in the meantime.
    pub(crate) fn fulfil(
        &self,
        reservation: &Reservation<K>,
        pair: Arc<P>,
    ) -> Result<(), AddError<P>> {
        let mut entries = self.entries.lock();
        if !entries.is_reserved(reservation) {
            return Err(AddError::Closed(pair));
        }
        entries.map.insert(reservation.key.clone(), PeerEntry::Connected(pair));
        self.advance_generation(&entries);
        Ok(())
    }

    /// Gives up a reservation.
    pub(crate) fn abandon(&self, reservation: &Reservation<K>) {
        let mut entries = self.entries.lock();
        if entries.is_reserved(reservation) {
            entries.map.remove(&reservation.key);
        }
    }

    /// Adds a pair that a peer has opened, under a key that is used for no other.
    ///
    /// # Errors
    ///
    /// [`AddError`] if the registry is closed or full.
    pub(crate) fn add(&self, key: K, pair: Arc<P>) -> Result<(), AddError<P>> {
        let mut entries = self.entries.lock();
        if entries.closed {
            return Err(AddError::Closed(pair));
        }
        if entries.map.len() >= self.max {
            return Err(AddError::Full(pair));
        }
        entries.map.insert(key, PeerEntry::Connected(pair));
        self.advance_generation(&entries);
        Ok(())
    }

    /// Removes `pair`; returns whether it was registered.
    pub(crate) fn remove(&self, key: &K, pair: &Arc<P>) -> bool {
        let mut entries = self.entries.lock();
        let is_same = |entry: &PeerEntry<P>| matches!(entry, PeerEntry::Connected(it) if Arc::ptr_eq(it, pair));
        let found = entries.map.get(key).is_some_and(is_same);
        if found {
            entries.map.remove(key);
            self.advance_generation(&entries);
        }
        found
    }

    /// Returns the key of `pair`, if it is registered.
    pub(crate) fn key_of(&self, pair: &Arc<P>) -> Option<K> {
        let entries = self.entries.lock();
        let is_same = |entry: &PeerEntry<P>| matches!(entry, PeerEntry::Connected(it) if Arc::ptr_eq(it, pair));
        entries.map.iter().find(|(_, entry)| is_same(entry)).map(|(key, _)| key.clone())
    }

    /// Closes the registry: no pair can be added any more. Returns all pairs, which the caller
    /// closes.
    #[must_use]
    pub(crate) fn close(&self) -> Vec<Arc<P>> {
        let mut entries = self.entries.lock();
        entries.closed = true;
        let all = std::mem::take(&mut entries.map);
        self.advance_generation(&entries);
        drop(entries);
        let connected = |entry| match entry {
            PeerEntry::Connected(pair) => Some(pair),
            PeerEntry::Reserved(_) => None,
        };
        all.into_values().filter_map(connected).collect()
    }

    /// Renews `snapshot` if pairs were added or removed; returns whether it did.
    pub(crate) fn renew(&self, snapshot: &mut Snapshot<P>) -> bool {
        if self.generation.load(Ordering::Acquire) == snapshot.generation {
            return false;
        }
        let entries = self.entries.lock();
        // Under the lock, so that the number belongs to exactly these entries.
        snapshot.generation = self.generation.load(Ordering::Relaxed);
        let connected = entries.map.values().filter_map(|entry| match entry {
            PeerEntry::Connected(pair) => Some(pair.clone()),
            PeerEntry::Reserved(_) => None,
        });
        snapshot.pairs = connected.collect();
        true
    }

    /// Returns the number of pairs and reservations.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.entries.lock().map.len()
    }

    /// Records that the entries, whose lock is held, have changed.
    fn advance_generation(&self, _: &LockGuard<'_, Entries<K, P>>) {
        self.generation.fetch_add(1, Ordering::Release);
    }
}

impl<K: Eq + Hash, P> Entries<K, P> {
    /// Returns whether the reservation still exists: the lock was released in between.
    fn is_reserved(&self, reservation: &Reservation<K>) -> bool {
        let same = |entry: &PeerEntry<P>| matches!(entry, PeerEntry::Reserved(it) if *it == reservation.number);
        !self.closed && self.map.get(&reservation.key).is_some_and(same)
    }
}

impl<K, P> std::fmt::Debug for Registry<K, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("max", &self.max).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(apus_local_loom)))]
mod tests {
    use super::*;

    fn reserve(registry: &Registry<u32, &str>, key: u32) -> Reservation<u32> {
        match registry.find_or_reserve(&key) {
            Found::Reserved(reservation) => reservation,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_thread_connects_and_the_others_find_the_pair() {
        let registry = Registry::new(8);
        let reservation = reserve(&registry, 1);
        assert!(matches!(registry.find_or_reserve(&1), Found::Connecting));
        registry.fulfil(&reservation, Arc::new("pair")).unwrap();
        assert!(matches!(registry.find_or_reserve(&1), Found::Pair(pair) if *pair == "pair"));
    }

    #[test]
    fn an_abandoned_reservation_is_not_fulfilled() {
        let registry = Registry::new(8);
        let reservation = reserve(&registry, 1);
        registry.abandon(&reservation);
        let again = reserve(&registry, 1);
        let late = registry.fulfil(&reservation, Arc::new("late"));
        assert!(matches!(late, Err(AddError::Closed(pair)) if *pair == "late"));
        registry.abandon(&reservation);
        registry.fulfil(&again, Arc::new("in time")).unwrap();
    }

    #[test]
    fn only_the_given_pair_is_removed() {
        let registry = Registry::new(8);
        let (old, new) = (Arc::new("old"), Arc::new("new"));
        registry.add(1, old.clone()).unwrap();
        assert!(registry.remove(&1, &old));
        registry.add(1, new.clone()).unwrap();
        assert!(!registry.remove(&1, &old), "the key belongs to another pair");
        assert!(matches!(registry.find_or_reserve(&1), Found::Pair(_)));
    }

    #[test]
    fn closing_returns_all_pairs_and_admits_none() {
        let registry = Registry::new(8);
        registry.add(1, Arc::new("one")).unwrap();
        let reservation = reserve(&registry, 2);
        assert_eq!(registry.close(), [Arc::new("one")]);
        assert!(registry.close().is_empty() && registry.len() == 0);
        assert!(matches!(registry.find_or_reserve(&3), Found::Closed));
        assert!(matches!(registry.add(4, Arc::new("x")), Err(AddError::Closed(_))));
        assert!(matches!(registry.fulfil(&reservation, Arc::new("x")), Err(AddError::Closed(_))));
    }

    #[test]
    fn the_number_of_pairs_is_limited() {
        let registry = Registry::new(2);
        registry.add(1, Arc::new("one")).unwrap();
        let _two = reserve(&registry, 2);
        assert!(matches!(registry.find_or_reserve(&3), Found::Full));
        assert!(matches!(registry.add(3, Arc::new("three")), Err(AddError::Full(_))));
        assert!(matches!(registry.find_or_reserve(&1), Found::Pair(_)), "a pair is still found");
    }

    #[test]
    fn a_snapshot_is_renewed_when_something_has_changed() {
        let registry = Registry::new(8);
        let mut snapshot = Snapshot::default();
        assert!(registry.renew(&mut snapshot) && snapshot.pairs().is_empty());
        let pair = Arc::new("pair");
        registry.add(1, pair.clone()).unwrap();
        assert!(registry.renew(&mut snapshot) && snapshot.pairs().len() == 1);
        assert!(!registry.renew(&mut snapshot));
        registry.remove(&1, &pair);
        assert!(registry.renew(&mut snapshot) && snapshot.pairs().is_empty());
    }
}
