//! Slots that are used again, and an index of them by hash: the live calls in the protocol core of
//! [apus](https://docs.rs/apus).
//!
//! # Invariants
//!
//! - **SLOTS-1** The version of a slot is odd exactly while its value is live. It grows with each
//!   change, so that no key names two values.

mod index;

pub(crate) use index::HashIndex;

use slotmap::{Key, KeyData};
use std::marker::PhantomData;

/// A table of long values by key.
///
/// An ended value stays in place until a new one is written over it, so that no long value is
/// moved. Values are boxed: a growing table would otherwise copy all of them at once. Keys and
/// their order are those of [`slotmap::SlotMap`].
#[derive(Debug)]
pub(crate) struct Slots<K, T> {
    slots: Vec<Slot<T>>,
    /// The number of the slot whose value has ended last; 0 if all are live. Numbers count from 1.
    free: u32,
    live: usize,
    keys: PhantomData<K>,
}

#[derive(Debug)]
struct Slot<T> {
    /// SLOTS-1.
    version: u32,
    /// The slot that was free before this one, if its value has ended.
    next_free: u32,
    value: Box<T>,
}

impl<K: Key, T> Default for Slots<K, T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: 0, live: 0, keys: PhantomData }
    }
}

/// The key of the value in a slot.
fn key<K: Key>(number: u32, version: u32) -> K {
    KeyData::from_ffi(u64::from(version) << 32 | u64::from(number)).into()
}

/// Returns the number of the slot that a key names.
#[inline(always)]
pub(crate) fn number(key: impl Key) -> u32 {
    key.data().as_ffi() as u32
}

/// The index of the slot that a key names, and its version.
fn place(key: impl Key) -> (usize, u32) {
    (number(key).wrapping_sub(1) as usize, (key.data().as_ffi() >> 32) as u32)
}

impl<K: Key, T> Slots<K, T> {
    /// Returns the number of live values.
    #[must_use]
    pub(crate) const fn len(&self) -> usize {
        self.live
    }

    /// Revives an ended value, to be overwritten by the caller; `None` if there is none.
    #[inline(always)]
    pub(crate) fn reuse(&mut self) -> Option<(K, &mut T)> {
        let slot = self.slots.get_mut(self.free.wrapping_sub(1) as usize)?;
        let number = std::mem::replace(&mut self.free, slot.next_free);
        slot.version = slot.version.wrapping_add(1);
        self.live += 1;
        Some((key(number, slot.version), &mut slot.value))
    }

    /// Adds a live value.
    #[cold]
    pub(crate) fn add(&mut self, value: T) -> K {
        self.slots.push(Slot { version: 1, next_free: 0, value: Box::new(value) });
        self.live += 1;
        key(self.slots.len() as u32, 1)
    }

    /// Ends a live value. Its key becomes invalid, and it stays readable until it is reused.
    #[inline(always)]
    pub(crate) fn end(&mut self, key: K) -> Option<&mut T> {
        let (at, version) = place(key);
        let slot = self.slots.get_mut(at).filter(|slot| slot.version == version)?;
        slot.version = version.wrapping_add(1);
        slot.next_free = std::mem::replace(&mut self.free, number(key));
        self.live -= 1;
        Some(&mut slot.value)
    }

    /// Returns a live value.
    #[inline(always)]
    pub(crate) fn get(&self, key: K) -> Option<&T> {
        let (at, version) = place(key);
        let slot = self.slots.get(at)?;
        if slot.version == version { Some(&slot.value) } else { None }
    }

    /// Returns a live value.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, key: K) -> Option<&mut T> {
        let (at, version) = place(key);
        let slot = self.slots.get_mut(at)?;
        if slot.version == version { Some(&mut slot.value) } else { None }
    }

    /// Returns the key and the value of a slot that is live.
    #[inline(always)]
    pub(crate) fn at(&self, number: u32) -> Option<(K, &T)> {
        let slot = self.slots.get(number.wrapping_sub(1) as usize)?;
        Some((key(number, slot.version), &slot.value))
    }

    /// Returns all live values, in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        let live = (1..).zip(&self.slots).filter(|(_, slot)| slot.version % 2 == 1);
        live.map(|(number, slot)| (key(number, slot.version), &*slot.value))
    }

    /// Returns all values, live and ended.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().map(|slot| &mut *slot.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use slotmap::{DefaultKey, SlotMap};

    proptest! {
        /// SLOTS-1; keys, order and values are those of a slot map.
        #[test]
        fn behaves_like_a_slot_map(steps in proptest::collection::vec((any::<bool>(), 0usize..8), 0..100)) {
            let mut slots: Slots<DefaultKey, usize> = Slots::default();
            let mut model: SlotMap<DefaultKey, usize> = SlotMap::new();
            let mut keys = Vec::new();
            for (step, (insert, which)) in steps.into_iter().enumerate() {
                if insert {
                    let reused = slots.reuse().map(|(key, value)| {
                        *value = step;
                        key
                    });
                    let key = reused.unwrap_or_else(|| slots.add(step));
                    prop_assert_eq!(key, model.insert(step));
                    keys.push(key);
                } else if let Some(key) = keys.get(which).copied() {
                    prop_assert_eq!(slots.end(key).copied(), model.remove(key));
                }
                for key in &keys {
                    prop_assert_eq!(slots.get(*key), model.get(*key));
                    prop_assert_eq!(slots.get_mut(*key), model.get_mut(*key));
                    if let Some(value) = model.get(*key) {
                        prop_assert_eq!(slots.at(number(*key)), Some((*key, value)));
                    }
                }
                prop_assert_eq!(slots.len(), model.len());
                prop_assert!(slots.iter().eq(model.iter()));
            }
        }
    }
}
