//! Locks of which the client does not know whether it has them: a signal has ended the operation before the server responded.
//!
//! The server may have granted such a lock already. The client withdraws the request, waits for its response, and then asks for
//! what the owner had before. Other lock operations of the same owner on the file wait for that: programs repeat what a signal
//! has interrupted, and a lock that is given back late must not be the new one.

use std::collections::BTreeMap;

use apus_fs_wire::{Ino, Lock, LockKind, LockOwner, LockRange, Response, SessionRequest};

use super::Client;
use super::calls::{Purpose, backoff};
use super::effect::{Clock, OpToken};
use crate::held_locks::HeldLock;

/// What is to be done about the locks of one owner on one file.
#[derive(Debug)]
enum Settling {
    /// The request of this operation has not been answered.
    Unanswered(OpToken),
    /// These ranges are to be asked for, the last one first.
    Restoring(Vec<(LockKind, LockRange)>),
}

/// Owners whose locks the client does not know.
#[derive(Debug, Default)]
pub(super) struct Unsettled {
    owners: BTreeMap<(Ino, LockOwner), Settling>,
    /// Lock operations that wait.
    waiting: Vec<OpToken>,
}

impl Unsettled {
    /// Has an operation wait if the locks of its owner are not known. Returns whether it has to.
    pub(super) fn wait(&mut self, ino: Ino, owner: LockOwner, token: OpToken) -> bool {
        let waits = self.owners.contains_key(&(ino, owner));
        if waits {
            self.waiting.push(token);
        }
        waits
    }

    /// The owner whose request an operation has made that was interrupted.
    fn of(&self, token: OpToken) -> Option<(Ino, LockOwner)> {
        let mut owners = self.owners.iter();
        let is_own =
            |settling: &Settling| matches!(settling, Settling::Unanswered(of) if *of == token);
        owners.find(|(_, settling)| is_own(settling)).map(|(key, _)| *key)
    }
}

impl Client {
    /// Withdraws the request of a lock operation that was interrupted, if it has made one. `waits`: the request may wait at the server, from
    /// where it is withdrawn with all others of the owner on the file; other requests are answered soon.
    pub(super) fn withdraw_lock(
        &mut self,
        clock: &Clock,
        token: OpToken,
        (ino, owner): (Ino, LockOwner),
        waits: bool,
    ) {
        if self.calls.find(&Purpose::Operation(token)).is_some() {
            self.unsettled.owners.insert((ino, owner), Settling::Unanswered(token));
            if waits && let Some(request) = self.cancel_request(ino, owner) {
                self.call(clock, Purpose::CancelLock(ino, owner), request);
            }
        }
    }

    fn cancel_request(&self, ino: Ino, owner: LockOwner) -> Option<SessionRequest> {
        let file = self.nodes.get(&ino)?.handle;
        Some(SessionRequest::CancelLock { file, owner })
    }

    /// Withdraws a request again that has not been answered yet: it may have come to the server behind its withdrawal.
    pub(super) fn lock_cancelled(&mut self, clock: &Clock, ino: Ino, owner: LockOwner) {
        let settling = self.unsettled.owners.get(&(ino, owner));
        if let Some(Settling::Unanswered(_)) = settling
            && let Some(request) = self.cancel_request(ino, owner)
        {
            let call = self.calls.add(clock.now, Purpose::CancelLock(ino, owner), Some(request));
            if let Some(outstanding) = self.calls.get_mut(call) {
                outstanding.retry_at = Some(clock.now + backoff(1));
            }
        }
    }

    /// Takes the response to a request of an operation, if that was interrupted.
    pub(super) fn lock_answered(&mut self, clock: &Clock, token: OpToken, response: &Response) {
        if let Some((ino, owner)) = self.unsettled.of(token) {
            if *response == Response::Locked(None) {
                self.restore_locks(clock, ino, owner);
            } else {
                self.locks_settled(ino, owner);
            }
        }
    }

    /// Has the server know what all owners have, in a session that is used from now on: it may have answered calls of before.
    pub(super) fn restore_all_locks(&mut self, clock: &Clock) {
        let owners: Vec<_> = self.unsettled.owners.keys().copied().collect();
        for (ino, owner) in owners {
            self.restore_locks(clock, ino, owner);
        }
    }

    fn restore_locks(&mut self, clock: &Clock, ino: Ino, owner: LockOwner) {
        self.unsettled.owners.insert((ino, owner), Settling::Restoring(Vec::new()));
        self.locks_changed(ino, owner);
        self.restore_next(clock, ino, owner);
    }

    /// Has an owner's locks restored as they are now, if they are being restored.
    pub(super) fn locks_changed(&mut self, ino: Ino, owner: LockOwner) {
        let held = self.locks.get(&ino).map_or(&[][..], Vec::as_slice);
        if let Some(Settling::Restoring(rest)) = self.unsettled.owners.get_mut(&(ino, owner)) {
            *rest = ranges(held, owner);
            rest.reverse();
        }
    }

    fn restore_next(&mut self, clock: &Clock, ino: Ino, owner: LockOwner) {
        let node = self.nodes.get(&ino);
        if let Some(Settling::Restoring(rest)) = self.unsettled.owners.get_mut(&(ino, owner))
            && let Some(node) = node
            && let Some((kind, range)) = rest.pop()
        {
            let file = node.handle;
            let lock = Lock { file, owner, kind, range, wait: false, reclaim: false };
            self.call(clock, Purpose::Restore(ino, owner, kind), SessionRequest::Lock(lock));
        } else {
            self.locks_settled(ino, owner);
        }
    }

    /// Takes the response to one range.
    pub(super) fn lock_restored(
        &mut self,
        clock: &Clock,
        (ino, owner, kind): (Ino, LockOwner, LockKind),
        response: &Response,
    ) {
        if kind != LockKind::Unlock && *response != Response::Locked(None) {
            if let Some(locks) = self.locks.get_mut(&ino) {
                locks.retain(|held| held.holder != owner || held.kind != kind);
            }
            self.lock_lost(ino, owner);
        }
        self.restore_next(clock, ino, owner);
    }

    fn locks_settled(&mut self, ino: Ino, owner: LockOwner) {
        self.unsettled.owners.remove(&(ino, owner));
        self.ready.extend(self.unsettled.waiting.drain(..));
    }
}

/// Returns all ranges of a file in their order, with what an owner has there.
fn ranges(held: &[HeldLock<LockOwner>], owner: LockOwner) -> Vec<(LockKind, LockRange)> {
    let own = held.iter().filter(|lock| lock.holder == owner);
    let mut own: Vec<_> = own.map(|lock| (lock.kind, lock.range)).collect();
    own.sort_by_key(|(_, range)| range.start);
    let (mut all, mut free) = (Vec::new(), Some(0));
    for (kind, range) in own {
        if let Some(start) = free.filter(|start| *start < range.start) {
            all.push((LockKind::Unlock, LockRange { start, end: range.start - 1 }));
        }
        all.push((kind, range));
        free = range.end.checked_add(1);
    }
    all.extend(free.map(|start| (LockKind::Unlock, LockRange { start, end: u64::MAX })));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_has_nothing_between_its_ranges() {
        let owner = |owner| LockOwner { owner, is_flock: false };
        let lock =
            |holder, kind, start, end| HeldLock { holder, kind, range: LockRange { start, end } };
        let held = [
            lock(owner(1), LockKind::Write, 20, u64::MAX),
            lock(owner(2), LockKind::Write, 5, 6),
            lock(owner(1), LockKind::Read, 3, 9),
        ];
        let found: Vec<_> = ranges(&held, owner(1))
            .into_iter()
            .map(|(kind, range)| (kind, range.start, range.end))
            .collect();
        let wanted = [
            (LockKind::Unlock, 0, 2),
            (LockKind::Read, 3, 9),
            (LockKind::Unlock, 10, 19),
            (LockKind::Write, 20, u64::MAX),
        ];
        assert_eq!(found, wanted);
        assert_eq!(
            ranges(&[], owner(1)),
            [(LockKind::Unlock, LockRange { start: 0, end: u64::MAX })]
        );
    }
}
