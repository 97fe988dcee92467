//! Locked ranges of one file, ordered by their first byte.
//!
//! Each branch stores how far the ranges below it reach, for two different owners. So one walk
//! from the root finds a range of another owner, however many ranges the asking owner has. The
//! tree is a treap: the priorities are keyed hashes, so no client can choose ranges that make it
//! deep.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

use super::lock_owner::Holder;

/// A range's place in the order. The ranges of one owner are disjoint, so no two are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    start: u64,
    holder: Holder,
}

/// The last bytes of several ranges: the furthest one, and the furthest of all other owners.
#[derive(Clone, Copy, Debug, Default)]
struct Reach {
    far: Option<(u64, Holder)>,
    other: Option<(u64, Holder)>,
}

impl Reach {
    fn add(&mut self, end: u64, holder: Holder) {
        let Some((far, owner)) = self.far else {
            self.far = Some((end, holder));
            return;
        };
        if owner == holder {
            self.far = Some((far.max(end), owner));
        } else if end > far {
            self.other = self.far;
            self.far = Some((end, holder));
        } else if self.other.is_none_or(|(other, _)| end > other) {
            self.other = Some((end, holder));
        }
    }

    fn join(&mut self, more: &Self) {
        for (end, holder) in [more.far, more.other].into_iter().flatten() {
            self.add(end, holder);
        }
    }

    /// Returns the furthest range of an owner other than `holder`.
    fn beside(&self, holder: Holder) -> Option<(u64, Holder)> {
        if self.far.is_some_and(|(_, owner)| owner == holder) { self.other } else { self.far }
    }
}

type Link = Option<Box<Branch>>;

#[derive(Debug)]
struct Branch {
    key: Key,
    end: u64,
    priority: u64,
    /// Of this range and all below.
    reach: Reach,
    left: Link,
    right: Link,
}

impl Branch {
    fn update(&mut self) {
        super::work::step();
        let mut reach = Reach::default();
        reach.add(self.end, self.key.holder);
        for below in [&self.left, &self.right].into_iter().flatten() {
            reach.join(&below.reach);
        }
        self.reach = reach;
    }
}

/// Locked ranges of several owners.
#[derive(Debug)]
pub(super) struct LockTree {
    root: Link,
    secret: [u8; 16],
}

impl LockTree {
    /// Returns a tree without ranges. Its shape depends on `secret`.
    pub(super) const fn new(secret: [u8; 16]) -> Self {
        Self { root: None, secret }
    }

    /// Adds a range of an owner that has no other one with the same first byte.
    pub(super) fn insert(&mut self, start: u64, end: u64, holder: Holder) {
        let key = Key { start, holder };
        let mut hasher = SipHasher24::new_with_key(&self.secret);
        hasher.write_u64(start);
        hasher.write_u64(holder.session);
        hasher.write_u64(holder.owner.owner);
        let priority = hasher.finish();
        let mut new =
            Branch { key, end, priority, reach: Reach::default(), left: None, right: None };
        new.update();
        self.root = Some(insert(self.root.take(), Box::new(new)));
    }

    /// Removes a range.
    pub(super) fn remove(&mut self, start: u64, holder: Holder) {
        self.root = remove(self.root.take(), Key { start, holder });
    }

    /// Of the ranges that start at `last` or before and do not belong to `holder`, returns the
    /// last byte and the owner of the one that ends last.
    pub(super) fn furthest(&self, last: u64, holder: Holder) -> Option<(u64, Holder)> {
        let mut reach = Reach::default();
        let mut at = &self.root;
        while let Some(branch) = at {
            super::work::step();
            if branch.key.start > last {
                at = &branch.left;
                continue;
            }
            reach.add(branch.end, branch.key.holder);
            if let Some(left) = &branch.left {
                reach.join(&left.reach);
            }
            at = &branch.right;
        }
        reach.beside(holder)
    }
}

fn insert(link: Link, mut new: Box<Branch>) -> Box<Branch> {
    let Some(mut branch) = link else { return new };
    if new.priority > branch.priority {
        (new.left, new.right) = split(Some(branch), new.key);
        new.update();
        return new;
    }
    let side = if new.key < branch.key { &mut branch.left } else { &mut branch.right };
    *side = Some(insert(side.take(), new));
    branch.update();
    branch
}

/// Divides a tree into the ranges before `key` and the others.
fn split(link: Link, key: Key) -> (Link, Link) {
    let Some(mut branch) = link else { return (None, None) };
    if branch.key < key {
        let (left, right) = split(branch.right.take(), key);
        branch.right = left;
        branch.update();
        (Some(branch), right)
    } else {
        let (left, right) = split(branch.left.take(), key);
        branch.left = right;
        branch.update();
        (left, Some(branch))
    }
}

fn remove(link: Link, key: Key) -> Link {
    let mut branch = link?;
    if branch.key == key {
        return join(branch.left, branch.right);
    }
    let side = if key < branch.key { &mut branch.left } else { &mut branch.right };
    *side = remove(side.take(), key);
    branch.update();
    Some(branch)
}

/// Joins two trees, of which all ranges of the first one come before those of the second one.
fn join(left: Link, right: Link) -> Link {
    match (left, right) {
        (None, only) | (only, None) => only,
        (Some(mut left), Some(mut right)) => {
            if left.priority > right.priority {
                left.right = join(left.right.take(), Some(right));
                left.update();
                Some(left)
            } else {
                right.left = join(Some(left), right.left.take());
                right.update();
                Some(right)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::LockOwner;
    use proptest::prelude::*;

    fn holder(session: u64) -> Holder {
        Holder { session, owner: LockOwner { owner: 1, is_flock: false } }
    }

    proptest! {
        /// The tree finds what a list finds.
        #[test]
        fn a_walk_finds_the_furthest_range(
            ranges in proptest::collection::btree_map((0..40u64, 0..4u64), 0..10u64, 0..60),
            removed in proptest::collection::vec(any::<prop::sample::Index>(), 0..20),
            asked in proptest::collection::vec((0..50u64, 0..5u64), 20),
        ) {
            let mut tree = LockTree::new([7; 16]);
            let mut ranges = ranges;
            for ((start, session), length) in &ranges {
                tree.insert(*start, start + length, holder(*session));
            }
            for index in removed {
                let Some(key) = ranges.keys().nth(index.index(60)).copied() else { continue };
                ranges.remove(&key);
                tree.remove(key.0, holder(key.1));
            }
            for (last, session) in asked {
                let others = ranges.iter().filter(|((start, owner), _)| *start <= last && *owner != session);
                let expected = others.map(|((start, _), length)| start + length).max();
                let found = tree.furthest(last, holder(session));
                prop_assert_eq!(found.map(|(end, _)| end), expected);
                prop_assert!(found.is_none_or(|(_, owner)| owner != holder(session)));
            }
        }
    }
}
