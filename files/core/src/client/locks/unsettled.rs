//! Lock state of an owner that the client does not know: a signal ended an operation before the
//! server responded.
//!
//! The server may have granted such a lock. The client withdraws the request, waits for its
//! response, and then restores the owner's earlier locks (`restoring.rs`). Other lock operations of
//! the same owner on the file wait until then: programs repeat an interrupted operation, and a lock
//! that is returned late must not be the new one.

use std::collections::BTreeMap;

use crate::held_locks::HeldLock;
use crate::wire::{Ino, LockKind, LockOwner, LockRange};

use crate::client::interface::effect::OpToken;

/// Recovery state of one owner's locks on one file.
#[derive(Debug, Default)]
struct Settling {
    /// Requests without a response, with their ranges.
    unanswered: Vec<(OpToken, LockRange)>,
    /// Bytes whose locks may differ between server and client.
    doubtful: Option<LockRange>,
    /// The range that is being restored.
    restoring: Option<Restoring>,
}

#[derive(Debug)]
struct Restoring {
    range: LockRange,
    /// Parts of the range, the next one last.
    rest: Vec<(LockKind, LockRange)>,
}

/// The next step in settling the locks of an owner on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum SettlingStep {
    /// Requests are outstanding.
    Wait,
    /// The server must restore a lock of this kind on this range.
    Restore(LockKind, LockRange),
    /// The owner's locks are known again.
    Settled,
}

/// Owners whose lock state is unknown.
#[derive(Debug, Default)]
pub(in crate::client) struct Unsettled {
    owners: BTreeMap<(Ino, LockOwner), Settling>,
}

impl Unsettled {
    /// Returns whether the locks of an owner on a file are unknown.
    pub(in crate::client) fn contains(&self, ino: Ino, owner: LockOwner) -> bool {
        self.owners.contains_key(&(ino, owner))
    }

    /// Returns all owners with unknown locks, and their files.
    pub(in crate::client) fn owners(&self) -> Vec<(Ino, LockOwner)> {
        self.owners.keys().copied().collect()
    }

    /// Adds the request of an operation that was interrupted.
    pub(in crate::client) fn add_request(
        &mut self,
        (ino, owner, range): (Ino, LockOwner, LockRange),
        token: OpToken,
    ) {
        self.owners.entry((ino, owner)).or_default().unanswered.push((token, range));
    }

    /// Marks the locks of a range as unknown.
    pub(in crate::client) fn doubt(&mut self, (ino, owner, range): (Ino, LockOwner, LockRange)) {
        self.owners.entry((ino, owner)).or_default().doubt(range);
    }

    /// Marks the ranges of all requests and restorations as unknown.
    pub(in crate::client) fn doubt_all(&mut self) {
        self.owners.values_mut().for_each(Settling::doubt_all);
    }

    /// Returns whether requests of an owner are unanswered.
    pub(in crate::client) fn is_unanswered(&self, ino: Ino, owner: LockOwner) -> bool {
        self.owners.get(&(ino, owner)).is_some_and(|settling| !settling.unanswered.is_empty())
    }

    /// Handles the response to a request of an interrupted operation. Returns the file and owner;
    /// `None` if the operation was not interrupted.
    pub(in crate::client) fn handle_response(
        &mut self,
        token: OpToken,
        is_granted: bool,
    ) -> Option<(Ino, LockOwner)> {
        self.owners.iter_mut().find_map(|(key, settling)| {
            let at = settling.unanswered.iter().position(|(of, _)| *of == token)?;
            let (_, range) = settling.unanswered.remove(at);
            if is_granted {
                settling.doubt(range);
            }
            Some(*key)
        })
    }

    /// Starts to restore an owner's locks, once all requests are answered and no range is being
    /// restored. Returns [`SettlingStep::Settled`] and forgets the owner when no range is in doubt.
    pub(in crate::client) fn settle(
        &mut self,
        ino: Ino,
        owner: LockOwner,
        held: &[HeldLock<LockOwner>],
    ) -> SettlingStep {
        let Some(settling) = self.owners.get_mut(&(ino, owner)) else { return SettlingStep::Wait };
        if !settling.unanswered.is_empty() || settling.restoring.is_some() {
            return SettlingStep::Wait;
        }
        if let Some(range) = settling.doubtful.take() {
            settling.restoring = Some(Restoring { range, rest: Vec::new() });
            self.set_held(ino, owner, held);
            return self.next_part(ino, owner, held);
        }
        self.owners.remove(&(ino, owner));
        SettlingStep::Settled
    }

    /// Updates the parts to restore to the locks that an owner holds now.
    pub(in crate::client) fn set_held(
        &mut self,
        ino: Ino,
        owner: LockOwner,
        held: &[HeldLock<LockOwner>],
    ) {
        if let Some(settling) = self.owners.get_mut(&(ino, owner))
            && let Some(restoring) = &mut settling.restoring
        {
            restoring.rest = parts(held, owner, restoring.range);
            restoring.rest.reverse();
        }
    }

    /// Returns the next part to restore, or settles.
    pub(in crate::client) fn next_part(
        &mut self,
        ino: Ino,
        owner: LockOwner,
        held: &[HeldLock<LockOwner>],
    ) -> SettlingStep {
        let Some(settling) = self.owners.get_mut(&(ino, owner)) else { return SettlingStep::Wait };
        match settling.restoring.as_mut().and_then(|restoring| restoring.rest.pop()) {
            Some((kind, range)) => SettlingStep::Restore(kind, range),
            None => self.stop_restoring(ino, owner, held),
        }
    }

    /// Ends a restoration, and settles ranges that are in doubt since it started.
    pub(in crate::client) fn stop_restoring(
        &mut self,
        ino: Ino,
        owner: LockOwner,
        held: &[HeldLock<LockOwner>],
    ) -> SettlingStep {
        if let Some(settling) = self.owners.get_mut(&(ino, owner)) {
            settling.restoring = None;
        }
        self.settle(ino, owner, held)
    }
}

impl Settling {
    fn doubt(&mut self, range: LockRange) {
        let before = self.doubtful.unwrap_or(range);
        let (start, end) = (before.start.min(range.start), before.end.max(range.end));
        self.doubtful = Some(LockRange { start, end });
    }

    /// Marks all requested ranges as unknown.
    fn doubt_all(&mut self) {
        for (_, range) in std::mem::take(&mut self.unanswered) {
            self.doubt(range);
        }
        if let Some(Restoring { range, .. }) = self.restoring.take() {
            self.doubt(range);
        }
    }
}

/// Returns all parts of a range in order, each with the owner's lock there.
fn parts(
    held: &[HeldLock<LockOwner>],
    owner: LockOwner,
    of: LockRange,
) -> Vec<(LockKind, LockRange)> {
    let own = held.iter().filter(|lock| lock.holder == owner);
    let own = own.filter(|lock| lock.range.start <= of.end && of.start <= lock.range.end);
    let mut own: Vec<_> = own.map(|lock| (lock.kind, lock.range)).collect();
    own.sort_by_key(|(_, range)| range.start);
    let (mut all, mut free) = (Vec::new(), Some(of.start));
    for (kind, range) in own {
        let (first, end) = (range.start.max(of.start), range.end.min(of.end));
        if let Some(start) = free.filter(|start| *start < first) {
            all.push((LockKind::Unlock, LockRange { start, end: first - 1 }));
        }
        all.push((kind, LockRange { start: first, end }));
        free = end.checked_add(1).filter(|next| *next <= of.end);
    }
    all.extend(free.map(|start| (LockKind::Unlock, LockRange { start, end: of.end })));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_has_nothing_between_its_ranges() {
        let owner = |owner| LockOwner { owner, is_flock: false };
        let range = |start, end| LockRange { start, end };
        let lock = |holder, kind, start, end| HeldLock { holder, kind, range: range(start, end) };
        let held = [
            lock(owner(1), LockKind::Write, 20, u64::MAX),
            lock(owner(2), LockKind::Write, 5, 6),
            lock(owner(1), LockKind::Read, 3, 9),
        ];
        let found = |of| {
            let found = parts(&held, owner(1), of).into_iter();
            found.map(|(kind, range)| (kind, range.start, range.end)).collect::<Vec<_>>()
        };
        let all = [
            (LockKind::Unlock, 0, 2),
            (LockKind::Read, 3, 9),
            (LockKind::Unlock, 10, 19),
            (LockKind::Write, 20, u64::MAX),
        ];
        assert_eq!(found(range(0, u64::MAX)), all);
        assert_eq!(found(range(4, 12)), [(LockKind::Read, 4, 9), (LockKind::Unlock, 10, 12)]);
        assert_eq!(found(range(10, 20)), [(LockKind::Unlock, 10, 19), (LockKind::Write, 20, 20)]);
        assert_eq!(found(range(5, 9)), [(LockKind::Read, 5, 9)]);
        let free = (LockKind::Unlock, LockRange { start: 0, end: u64::MAX });
        assert_eq!(parts(&[], owner(1), range(0, u64::MAX)), [free]);
    }
}
