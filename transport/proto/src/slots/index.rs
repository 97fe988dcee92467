//! The index of slots by hash.
//!
//! # Invariants
//!
//! - **INDEX-1** Between the place that a hash names and the place of its entry no place is empty.
//! - **INDEX-2** At least half of the places are empty, so that a search ends.

/// A place of the table.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The lower bits of the hash.
    tag: u32,
    /// The number of the slot; 0 if the place is empty.
    slot: u32,
}

/// An index of numbered slots by hash; numbers count from 1.
///
/// An open-addressed table with linear probing, at most half full. A place holds the number of a
/// slot and 32 bits of the hash: a cache line holds eight of them. What tells two slots of one hash
/// apart is read in the slots, which the caller is about to use.
#[derive(Debug, Default)]
pub(crate) struct HashIndex {
    /// As many as a power of two, or none.
    places: Vec<Place>,
    len: usize,
}

/// Places of the smallest table.
const LEAST: usize = 16;

impl HashIndex {
    /// Returns the first result of `wanted` for a slot with this hash; `None` if it is `None` for
    /// all of them.
    #[inline(always)]
    #[must_use]
    pub(crate) fn find<T>(&self, hash: u64, wanted: impl Fn(u32) -> Option<T>) -> Option<T> {
        let tag = hash as u32;
        let mut at = tag as usize;
        loop {
            let place = self.places.get(at & self.places.len().wrapping_sub(1))?;
            if place.slot == 0 {
                return None;
            }
            if place.tag == tag
                && let found @ Some(_) = wanted(place.slot)
            {
                return found;
            }
            at = at.wrapping_add(1);
        }
    }

    /// Adds a slot, which is not in the index.
    #[inline(always)]
    pub(crate) fn insert(&mut self, hash: u64, slot: u32) {
        if 2 * (self.len + 1) > self.places.len() {
            self.grow();
        }
        self.len += 1;
        self.put(Place { tag: hash as u32, slot });
    }

    #[inline(always)]
    fn put(&mut self, new: Place) {
        let mask = self.places.len().wrapping_sub(1);
        let mut at = new.tag as usize;
        while let Some(place) = self.places.get_mut(at & mask) {
            if place.slot == 0 {
                *place = new;
                return;
            }
            at = at.wrapping_add(1);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let len = (2 * self.places.len()).max(LEAST);
        let before = std::mem::replace(&mut self.places, vec![Place::default(); len]);
        before.into_iter().filter(|place| place.slot != 0).for_each(|place| self.put(place));
    }

    /// Takes a slot out. Returns whether it was in the index.
    #[inline(always)]
    pub(crate) fn remove(&mut self, hash: u64, slot: u32) -> bool {
        let mask = self.places.len().wrapping_sub(1);
        let mut at = hash as u32 as usize & mask;
        loop {
            match self.places.get(at) {
                Some(place) if place.slot == slot => break,
                Some(place) if place.slot != 0 => at = (at + 1) & mask,
                _ => return false,
            }
        }
        self.len -= 1;
        self.close(at);
        true
    }

    /// Empties a place, and moves the entries behind it that would become unreachable (INDEX-1).
    #[inline(always)]
    fn close(&mut self, mut hole: usize) {
        let mask = self.places.len().wrapping_sub(1);
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let place = self.places[at];
            if place.slot == 0 {
                self.places[hole] = Place::default();
                return;
            }
            let distance = |from: usize| at.wrapping_sub(from) & mask;
            if distance(place.tag as usize) >= distance(hole) {
                self.places[hole] = place;
                hole = at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// INDEX-1, INDEX-2: hashes that collide in their lower bits, in the order of a map.
        #[test]
        fn behaves_like_a_map(
            steps in proptest::collection::vec((any::<bool>(), 0u64..5, 0u64..9), 0..200),
        ) {
            let mut index = HashIndex::default();
            let mut model: BTreeMap<u32, u64> = BTreeMap::new();
            let mut next = 1;
            for (insert, low, high) in steps {
                let hash = (high << 30) | (low * 7);
                if insert {
                    index.insert(hash, next);
                    model.insert(next, hash);
                    next += 1;
                } else if let Some((slot, hash)) = model.pop_first() {
                    prop_assert!(index.remove(hash, slot));
                    prop_assert!(!index.remove(hash, slot));
                }
                prop_assert!(2 * model.len() <= index.places.len());
                for (slot, hash) in &model {
                    prop_assert_eq!(index.find(*hash, |found| (found == *slot).then_some(found)), Some(*slot));
                }
                prop_assert_eq!(index.len, model.len());
            }
        }
    }
}
