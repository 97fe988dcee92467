//! Which pairs are there, and what happens if one comes, goes or is looked up at the same time?
//!
//! The registry has one lock. It is taken to look a peer up, to add and to remove; never to send or to receive:
//! whoever receives from all pairs has a list of its own ([`Snapshot`]) that it renews when a counter has
//! changed.
//!
//! # The locking protocol
//!
//! - **What the lock protects**: the entries, whether the registry is closed. `generation` is written under it
//!   (release) and read without (acquire): a reader that sees the old number has a list that was right a moment
//!   ago.
//! - **Who holds references**: the registry one to each pair, every snapshot one, and whoever was given one. A
//!   pair is unmapped when the last is dropped; that it has been removed only means that nobody finds it any more.
//! - **Order**: registry, then pairs by number ([`super::lock`]). In fact no pair is locked under this lock: pairs are
//!   ended after it was let go ([`Registry::close`]).
//! - **What is looked at again** after the lock was let go, because connecting makes system calls and must not
//!   be done under it:
//!   - [`Registry::fulfil`]: is the registry still open, and is the entry still the one that was reserved? The peer
//!     may have connected, been removed or the endpoint closed meanwhile. If not, the new pair is given back,
//!     to be closed by whoever made it.
//!   - [`Registry::remove`]: is the pair under this key still the same one? Another may have taken its place.
//!   - [`Registry::abandon`]: is the reservation still there?
//!
//! # Invariants
//!
//! - **G1** A pair that was added is found, or has been handed out by [`Registry::close`] or removed: none is
//!   lost between connecting and closing.
//! - **G2** There is at most one pair, or one reservation, for each key.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use crate::lock::{Held, Lock, Rank};
use crate::sync::{AtomicU64, Ordering};

/// All pairs of an endpoint, by key.
pub(crate) struct Registry<K, P> {
    entries: Lock<Entries<K, P>>,
    /// Grows whenever a pair is added or removed.
    generation: AtomicU64,
    max: usize,
}

struct Entries<K, P> {
    map: HashMap<K, Entry<P>>,
    closed: bool,
    /// Of the next reservation.
    next: u64,
}

enum Entry<P> {
    /// Somebody connects.
    Reserved(u64),
    There(Arc<P>),
}

/// The right, and the duty, to connect: ends with [`Registry::fulfil`] or [`Registry::abandon`].
#[derive(Debug)]
#[must_use = "nobody else can connect to this peer meanwhile"]
pub(crate) struct Reservation<K> {
    key: K,
    number: u64,
}

impl<K: Eq> Reservation<K> {
    /// Whether it is for `key`.
    pub(crate) fn is_for(&self, key: &K) -> bool {
        self.key == *key
    }
}

/// What there is for a key.
#[derive(Debug)]
pub(crate) enum Found<K, P> {
    /// A pair.
    Pair(Arc<P>),
    /// Nothing; whoever asked shall connect.
    Nothing(Reservation<K>),
    /// Somebody else connects at this moment.
    Connecting,
    /// There are as many pairs as there may be.
    Full,
    /// The registry is closed.
    Closed,
}

/// The same for somebody who does not want to connect.
#[derive(Debug)]
pub(crate) enum Seen<P> {
    /// A pair.
    Pair(Arc<P>),
    /// Somebody connects at this moment.
    Connecting,
    /// Nothing.
    Nothing,
}

/// What became of a pair that was to be added.
#[derive(Debug)]
pub(crate) enum NotAdded<P> {
    /// There are as many pairs as there may be. The pair is given back.
    Full(Arc<P>),
    /// The registry is closed, or the reservation has lapsed. The pair is given back.
    Closed(Arc<P>),
}

/// All pairs that there were at some moment.
#[derive(Debug)]
pub(crate) struct Snapshot<P> {
    generation: u64,
    pairs: Vec<Arc<P>>,
}

impl<P> Default for Snapshot<P> {
    fn default() -> Self {
        // A number that no registry has: the first look renews it.
        Self { generation: u64::MAX, pairs: Vec::new() }
    }
}

impl<P> Snapshot<P> {
    /// The pairs, in no certain order.
    #[must_use]
    pub(crate) fn pairs(&self) -> &[Arc<P>] {
        &self.pairs
    }
}

impl<K: Clone + Eq + Hash, P> Registry<K, P> {
    /// An empty one for at most `max` pairs.
    #[must_use]
    pub(crate) fn new(max: usize) -> Self {
        let entries = Entries { map: HashMap::new(), closed: false, next: 0 };
        Self { entries: Lock::new(Rank::Registry, entries), generation: AtomicU64::new(0), max }
    }

    /// The pair for `key`, or the right to make it.
    pub(crate) fn find(&self, key: &K) -> Found<K, P> {
        let mut entries = self.entries.lock();
        if entries.closed {
            return Found::Closed;
        }
        match entries.map.get(key) {
            Some(Entry::There(pair)) => return Found::Pair(pair.clone()),
            Some(Entry::Reserved(_)) => return Found::Connecting,
            None if entries.map.len() >= self.max => return Found::Full,
            None => {}
        }
        let number = entries.next;
        entries.next += 1;
        entries.map.insert(key.clone(), Entry::Reserved(number));
        Found::Nothing(Reservation { key: key.clone(), number })
    }

    /// What there is for `key`, without the right to make it.
    pub(crate) fn look(&self, key: &K) -> Seen<P> {
        match self.entries.lock().map.get(key) {
            Some(Entry::There(pair)) => Seen::Pair(pair.clone()),
            Some(Entry::Reserved(_)) => Seen::Connecting,
            None => Seen::Nothing,
        }
    }

    /// Adds the pair that was reserved for.
    ///
    /// # Errors
    ///
    /// [`NotAdded`]: the registry was closed meanwhile.
    pub(crate) fn fulfil(
        &self,
        reservation: &Reservation<K>,
        pair: Arc<P>,
    ) -> Result<(), NotAdded<P>> {
        let mut entries = self.entries.lock();
        if !entries.is_reserved(reservation) {
            return Err(NotAdded::Closed(pair));
        }
        entries.map.insert(reservation.key.clone(), Entry::There(pair));
        self.has_changed(&entries);
        Ok(())
    }

    /// Gives a reservation up.
    pub(crate) fn abandon(&self, reservation: &Reservation<K>) {
        let mut entries = self.entries.lock();
        if entries.is_reserved(reservation) {
            entries.map.remove(&reservation.key);
        }
    }

    /// Adds a pair that a peer has made, under a key that nobody else uses.
    ///
    /// # Errors
    ///
    /// [`NotAdded`]: closed, or full.
    pub(crate) fn add(&self, key: K, pair: Arc<P>) -> Result<(), NotAdded<P>> {
        let mut entries = self.entries.lock();
        if entries.closed {
            return Err(NotAdded::Closed(pair));
        }
        if entries.map.len() >= self.max {
            return Err(NotAdded::Full(pair));
        }
        entries.map.insert(key, Entry::There(pair));
        self.has_changed(&entries);
        Ok(())
    }

    /// Removes `pair`; whether it was there.
    pub(crate) fn remove(&self, key: &K, pair: &Arc<P>) -> bool {
        let mut entries = self.entries.lock();
        let is_same = |entry: &Entry<P>| matches!(entry, Entry::There(it) if Arc::ptr_eq(it, pair));
        let there = entries.map.get(key).is_some_and(is_same);
        if there {
            entries.map.remove(key);
            self.has_changed(&entries);
        }
        there
    }

    /// The key of `pair`, if it is there.
    pub(crate) fn key_of(&self, pair: &Arc<P>) -> Option<K> {
        let entries = self.entries.lock();
        let is_same = |entry: &Entry<P>| matches!(entry, Entry::There(it) if Arc::ptr_eq(it, pair));
        entries.map.iter().find(|(_, entry)| is_same(entry)).map(|(key, _)| key.clone())
    }

    /// Closes the registry: nothing is added any more, and all pairs are handed out, to be closed by the caller.
    #[must_use]
    pub(crate) fn close(&self) -> Vec<Arc<P>> {
        let mut entries = self.entries.lock();
        entries.closed = true;
        let all = std::mem::take(&mut entries.map);
        self.has_changed(&entries);
        drop(entries);
        let there = |entry| match entry {
            Entry::There(pair) => Some(pair),
            Entry::Reserved(_) => None,
        };
        all.into_values().filter_map(there).collect()
    }

    /// Renews `snapshot` if pairs have come or gone; whether they had.
    pub(crate) fn renew(&self, snapshot: &mut Snapshot<P>) -> bool {
        if self.generation.load(Ordering::Acquire) == snapshot.generation {
            return false;
        }
        let entries = self.entries.lock();
        // Under the lock: the number of just these entries.
        snapshot.generation = self.generation.load(Ordering::Relaxed);
        snapshot.pairs.clear();
        snapshot.pairs.extend(entries.map.values().filter_map(|entry| match entry {
            Entry::There(pair) => Some(pair.clone()),
            Entry::Reserved(_) => None,
        }));
        true
    }

    /// Pairs and reservations.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.entries.lock().map.len()
    }

    /// The entries, whose lock is held, have changed.
    fn has_changed(&self, _: &Held<'_, Entries<K, P>>) {
        self.generation.fetch_add(1, Ordering::Release);
    }
}

impl<K: Eq + Hash, P> Entries<K, P> {
    /// Whether the reservation still stands: looked at again, since the lock was let go in between.
    fn is_reserved(&self, reservation: &Reservation<K>) -> bool {
        let same =
            |entry: &Entry<P>| matches!(entry, Entry::Reserved(it) if *it == reservation.number);
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
        match registry.find(&key) {
            Found::Nothing(reservation) => reservation,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_connects_and_the_others_find() {
        let registry = Registry::new(8);
        let reservation = reserve(&registry, 1);
        assert!(matches!(registry.find(&1), Found::Connecting));
        registry.fulfil(&reservation, Arc::new("pair")).unwrap();
        assert!(matches!(registry.find(&1), Found::Pair(pair) if *pair == "pair"));
    }

    #[test]
    fn a_reservation_that_lapsed_is_not_fulfilled() {
        let registry = Registry::new(8);
        let reservation = reserve(&registry, 1);
        registry.abandon(&reservation);
        let again = reserve(&registry, 1);
        let late = registry.fulfil(&reservation, Arc::new("late"));
        assert!(matches!(late, Err(NotAdded::Closed(pair)) if *pair == "late"));
        registry.abandon(&reservation);
        registry.fulfil(&again, Arc::new("in time")).unwrap();
    }

    #[test]
    fn only_the_pair_that_is_meant_is_removed() {
        let registry = Registry::new(8);
        let (old, new) = (Arc::new("old"), Arc::new("new"));
        registry.add(1, old.clone()).unwrap();
        assert!(registry.remove(&1, &old));
        registry.add(1, new.clone()).unwrap();
        assert!(!registry.remove(&1, &old), "another has taken its place");
        assert!(matches!(registry.find(&1), Found::Pair(_)));
    }

    #[test]
    fn closing_hands_everything_out_and_lets_nothing_in() {
        let registry = Registry::new(8);
        registry.add(1, Arc::new("one")).unwrap();
        let reservation = reserve(&registry, 2);
        assert_eq!(registry.close(), [Arc::new("one")]);
        assert!(registry.close().is_empty() && registry.len() == 0);
        assert!(matches!(registry.find(&3), Found::Closed));
        assert!(matches!(registry.add(4, Arc::new("x")), Err(NotAdded::Closed(_))));
        assert!(matches!(registry.fulfil(&reservation, Arc::new("x")), Err(NotAdded::Closed(_))));
    }

    #[test]
    fn there_is_a_limit() {
        let registry = Registry::new(2);
        registry.add(1, Arc::new("one")).unwrap();
        let _two = reserve(&registry, 2);
        assert!(matches!(registry.find(&3), Found::Full));
        assert!(matches!(registry.add(3, Arc::new("three")), Err(NotAdded::Full(_))));
        assert!(matches!(registry.find(&1), Found::Pair(_)), "who is there is found");
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
