//! Locks that the server has granted to this client's owners, by file.

use std::collections::BTreeMap;

use crate::held_locks::{HeldLock, replace};
use crate::wire::{Ino, LockKind, LockOwner, LockRange};

use super::unsettled::{SettlingStep, Unsettled};

/// All bytes of a file.
pub(in crate::client) const WHOLE: LockRange = LockRange { start: 0, end: u64::MAX };

/// Returns the range of a lock request: `flock` locks whole files.
pub(in crate::client) fn locked_range(owner: LockOwner, asked: LockRange) -> LockRange {
    if owner.is_flock { WHOLE } else { asked }
}

/// Locks by file.
type Held = BTreeMap<Ino, Vec<HeldLock<LockOwner>>>;

/// Returns the locks on a file.
fn on_file(held: &Held, ino: Ino) -> &[HeldLock<LockOwner>] {
    held.get(&ino).map_or(&[], Vec::as_slice)
}

/// Locks of all owners.
#[derive(Debug, Default)]
pub(in crate::client) struct Locks {
    held: Held,
    /// Locks of the previous session, to be taken again after its leases; the next one last.
    to_relock: Vec<(Ino, HeldLock<LockOwner>)>,
    pub(in crate::client) unsettled: Unsettled,
}

impl Locks {
    /// Records an owner's lock, for a server that is restarted.
    pub(in crate::client) fn record(
        &mut self,
        ino: Ino,
        holder: LockOwner,
        kind: LockKind,
        asked: LockRange,
    ) {
        let range = locked_range(holder, asked);
        let locks = self.held.entry(ino).or_default();
        replace(locks, HeldLock { holder, kind, range });
        if locks.is_empty() {
            self.held.remove(&ino);
        }
        self.unsettled.set_held(ino, holder, on_file(&self.held, ino));
    }

    /// Starts to restore an owner's locks: see [`Unsettled::settle`].
    pub(in crate::client) fn settle(&mut self, ino: Ino, owner: LockOwner) -> SettlingStep {
        self.unsettled.settle(ino, owner, on_file(&self.held, ino))
    }

    /// Returns the next part to restore: see [`Unsettled::next_part`].
    pub(in crate::client) fn next_part(&mut self, ino: Ino, owner: LockOwner) -> SettlingStep {
        self.unsettled.next_part(ino, owner, on_file(&self.held, ino))
    }

    /// Ends a restoration: see [`Unsettled::stop_restoring`].
    pub(in crate::client) fn stop_restoring(&mut self, ino: Ino, owner: LockOwner) -> SettlingStep {
        self.unsettled.stop_restoring(ino, owner, on_file(&self.held, ino))
    }

    /// Removes a range that the server has not granted again.
    pub(in crate::client) fn lose_range(&mut self, ino: Ino, part: HeldLock<LockOwner>) {
        if let Some(locks) = self.held.get_mut(&ino) {
            replace(locks, HeldLock { kind: LockKind::Unlock, ..part });
        }
    }

    /// Forgets the locks on a file that no longer exists.
    pub(in crate::client) fn forget_file(&mut self, ino: Ino) {
        self.held.remove(&ino);
    }

    /// Forgets all locks and returns their number: they end with the session.
    pub(in crate::client) fn forget_all(&mut self) -> u64 {
        std::mem::take(&mut self.held).values().map(Vec::len).sum::<usize>() as u64
    }

    /// Schedules all locks to be taken again in the next session.
    pub(in crate::client) fn schedule_relock(&mut self) {
        let held = self.held.iter();
        let held = held.flat_map(|(ino, locks)| locks.iter().map(|lock| (*ino, *lock)));
        self.to_relock = held.collect();
    }

    /// Returns the next lock to take again.
    pub(in crate::client) fn next_relock(&self) -> Option<(Ino, HeldLock<LockOwner>)> {
        self.to_relock.last().copied()
    }

    /// Removes the lock that [`next_relock`](Self::next_relock) returns.
    pub(in crate::client) fn pop_relock(&mut self) -> Option<(Ino, HeldLock<LockOwner>)> {
        self.to_relock.pop()
    }

    /// Removes a lock that could not be taken again.
    pub(in crate::client) fn lose(&mut self, ino: Ino, lock: HeldLock<LockOwner>) {
        if let Some(locks) = self.held.get_mut(&ino) {
            locks.retain(|held| *held != lock);
        }
    }
}
