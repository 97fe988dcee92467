//! Locks of one file, and the requests that wait for them.
//!
//! A waiting request waits at one byte: a byte that it wants and that another owner has locked in
//! its way. Only a change of that owner's lock on that byte concerns the request, so changes of
//! other locks cost nothing, however many requests wait.

use std::collections::{BTreeMap, BTreeSet};

use crate::wire::{LockKind, LockRange};

use super::lock_owner::{HeldLock, Holder};
use super::lock_tree::LockTree;

/// The owner and the byte that a request waits for.
pub(super) type Obstacle = (Holder, u64);

#[derive(Clone, Copy, Debug)]
struct OwnRange {
    end: u64,
    kind: LockKind,
}

/// Locks of `fcntl`, or locks of `flock`: both kinds ignore each other.
#[derive(Debug)]
struct Family {
    /// Ranges of each owner by first byte. They are disjoint, and no two that touch have one kind.
    owners: BTreeMap<Holder, BTreeMap<u64, OwnRange>>,
    all: LockTree,
    writers: LockTree,
}

impl Family {
    const fn new(secret: [u8; 16]) -> Self {
        Self { owners: BTreeMap::new(), all: LockTree::new(secret), writers: LockTree::new(secret) }
    }

    /// Returns a lock of another owner that conflicts with a wanted one.
    fn conflict(&self, wanted: &HeldLock) -> Option<HeldLock> {
        let tree = match wanted.kind {
            LockKind::Write => &self.all,
            LockKind::Read => &self.writers,
            LockKind::Unlock => return None,
        };
        let (end, holder) = tree.furthest(wanted.range.end, wanted.holder)?;
        if end < wanted.range.start {
            return None;
        }
        let (start, range) = self.owners.get(&holder)?.range(..=end).next_back()?;
        Some(HeldLock { holder, kind: range.kind, range: LockRange { start: *start, end } })
    }

    fn add(&mut self, holder: Holder, range: LockRange, kind: LockKind) {
        let own = OwnRange { end: range.end, kind };
        self.owners.entry(holder).or_default().insert(range.start, own);
        self.all.insert(range.start, range.end, holder);
        if kind == LockKind::Write {
            self.writers.insert(range.start, range.end, holder);
        }
    }

    fn remove(&mut self, holder: Holder, start: u64) {
        let Some(own) = self.owners.get_mut(&holder) else { return };
        let Some(range) = own.remove(&start) else { return };
        if own.is_empty() {
            self.owners.remove(&holder);
        }
        self.all.remove(start, holder);
        if range.kind == LockKind::Write {
            self.writers.remove(start, holder);
        }
    }

    /// Returns the ranges of an owner that overlap a range or touch it.
    fn near(&self, holder: Holder, range: LockRange) -> Vec<(u64, OwnRange)> {
        let Some(own) = self.owners.get(&holder) else { return Vec::new() };
        let before = own.range(..=range.start).next_back();
        let before = before.filter(|(_, own)| own.end.saturating_add(1) >= range.start);
        let first = before.map_or(range.start, |(start, _)| *start);
        let near = own.range(first..=range.end.saturating_add(1));
        near.map(|(start, own)| (*start, *own)).collect()
    }

    /// Replaces an owner's locks in a range. Returns how many more ranges it has.
    fn replace(&mut self, wanted: &HeldLock) -> isize {
        let HeldLock { holder, kind, range } = *wanted;
        let mut union = range;
        let mut more = 0;
        for (start, own) in self.near(holder, range) {
            let end = own.end;
            if own.kind == kind {
                union = LockRange { start: union.start.min(start), end: union.end.max(end) };
            } else if end < range.start || range.end < start {
                continue;
            }
            self.remove(holder, start);
            more -= 1;
            if own.kind == kind {
                continue;
            }
            // Beyond the range, so neither subtraction nor addition overflows.
            if start < range.start {
                self.add(holder, LockRange { start, end: range.start - 1 }, own.kind);
                more += 1;
            }
            if end > range.end {
                self.add(holder, LockRange { start: range.end + 1, end }, own.kind);
                more += 1;
            }
        }
        if kind != LockKind::Unlock {
            self.add(holder, union, kind);
            more += 1;
        }
        more
    }

    /// Returns the owners of a session.
    fn owners_of(&self, session: u64) -> Vec<Holder> {
        let owners = self.owners.range(Holder::first_of(session)..);
        owners.map(|(holder, _)| *holder).take_while(|holder| holder.session == session).collect()
    }
}

/// Locks of one file.
#[derive(Debug)]
pub(super) struct FileLocks {
    families: [Family; 2],
    /// Waiting requests, by the byte and the owner that they wait for.
    behind: BTreeMap<Obstacle, BTreeSet<u64>>,
}

impl FileLocks {
    pub(super) const fn new(secret: [u8; 16]) -> Self {
        Self { families: [Family::new(secret), Family::new(secret)], behind: BTreeMap::new() }
    }

    fn family(&self, holder: Holder) -> &Family {
        &self.families[usize::from(holder.owner.is_flock)]
    }

    /// Returns a lock of another owner that conflicts with a wanted one.
    pub(super) fn conflict(&self, wanted: &HeldLock) -> Option<HeldLock> {
        self.family(wanted.holder).conflict(wanted)
    }

    /// Returns the owner and a byte that prevent a lock; `None` if it is free.
    pub(super) fn obstacle(&self, wanted: &HeldLock) -> Option<Obstacle> {
        let conflict = self.conflict(wanted)?;
        Some((conflict.holder, conflict.range.end.min(wanted.range.end)))
    }

    /// Returns whether an owner has a lock of a range.
    pub(super) fn is_held(&self, wanted: &HeldLock) -> bool {
        let own = self.family(wanted.holder).owners.get(&wanted.holder);
        let own = own.and_then(|own| own.range(..=wanted.range.start).next_back());
        own.is_some_and(|(_, own)| own.kind == wanted.kind && wanted.range.end <= own.end)
    }

    /// Returns whether an unlock divides a range, and so adds one.
    pub(super) fn divides(&self, unlock: &HeldLock) -> bool {
        let own = self.family(unlock.holder).owners.get(&unlock.holder);
        let before = own.and_then(|own| own.range(..unlock.range.start).next_back());
        before.is_some_and(|(_, own)| own.end > unlock.range.end)
    }

    /// Replaces an owner's locks in a range. Returns how many more ranges it has, and adds the
    /// requests that waited for it there to `ready`.
    pub(super) fn replace(&mut self, wanted: &HeldLock, ready: &mut BTreeSet<u64>) -> isize {
        let HeldLock { holder, kind, range } = *wanted;
        let more = self.families[usize::from(holder.owner.is_flock)].replace(wanted);
        // A written range stays in the way of all that waited.
        if kind != LockKind::Write {
            self.release(holder, range, ready);
        }
        more
    }

    fn release(&mut self, holder: Holder, range: LockRange, ready: &mut BTreeSet<u64>) {
        while let Some((obstacle, _)) =
            self.behind.range((holder, range.start)..=(holder, range.end)).next()
        {
            let obstacle = *obstacle;
            ready.extend(self.behind.remove(&obstacle).unwrap_or_default());
        }
    }

    /// Has a request wait.
    pub(super) fn wait(&mut self, ticket: u64, obstacle: Obstacle) {
        self.behind.entry(obstacle).or_default().insert(ticket);
    }

    /// Removes a request that waits.
    pub(super) fn withdraw(&mut self, ticket: u64, obstacle: Obstacle) {
        if let Some(tickets) = self.behind.get_mut(&obstacle) {
            tickets.remove(&ticket);
            if tickets.is_empty() {
                self.behind.remove(&obstacle);
            }
        }
    }

    /// Releases the locks of a session. Returns their number.
    pub(super) fn end(&mut self, session: u64, ready: &mut BTreeSet<u64>) -> usize {
        let whole = LockRange { start: 0, end: u64::MAX };
        let mut released = 0;
        for at in 0..self.families.len() {
            for holder in self.families[at].owners_of(session) {
                let all = HeldLock { holder, kind: LockKind::Unlock, range: whole };
                released += self.replace(&all, ready).unsigned_abs();
            }
        }
        released
    }

    /// Returns whether a session has a lock.
    pub(super) fn has(&self, session: u64) -> bool {
        self.families.iter().any(|family| {
            let first = family.owners.range(Holder::first_of(session)..).next();
            first.is_some_and(|(holder, _)| holder.session == session)
        })
    }

    /// Returns the numbers of locks of each session.
    pub(super) fn counts(&self) -> BTreeMap<u64, usize> {
        let mut counts = BTreeMap::new();
        for (holder, own) in self.families.iter().flat_map(|family| &family.owners) {
            *counts.entry(holder.session).or_default() += own.len();
        }
        counts
    }

    /// Returns the requests that wait.
    pub(super) fn tickets(&self) -> impl Iterator<Item = u64> {
        self.behind.values().flatten().copied()
    }

    /// Returns whether nothing is locked and nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.behind.is_empty() && self.families.iter().all(|family| family.owners.is_empty())
    }
}
