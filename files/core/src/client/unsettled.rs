//! Locks of which the client does not know whether it has them: a signal has ended the operation before the server responded.
//!
//! The server may have granted such a lock already. The client withdraws the request, waits for its response, and then asks for
//! what the owner had before. Other lock operations of the same owner on the file wait for that: programs repeat what a signal
//! has interrupted, and a lock that is given back late must not be the new one.

use std::collections::BTreeMap;

use crate::wire::{Ino, Lock, LockKind, LockOwner, LockRange, Response, SessionRequest};

use super::Client;
use super::calls::{Purpose, backoff};
use super::effect::{Clock, OpToken};
use super::session::SessionState;
use crate::held_locks::{HeldLock, replace};

/// What is to be done about the locks of one owner on one file.
#[derive(Debug, Default)]
struct Settling {
    /// Requests that have not been answered, with the bytes that they were about.
    unanswered: Vec<(OpToken, LockRange)>,
    /// Bytes of which the server may believe otherwise than the client.
    doubtful: Option<LockRange>,
    /// What is being asked for.
    restoring: Option<Restoring>,
}

#[derive(Debug)]
struct Restoring {
    range: LockRange,
    /// Parts of the range, the next one last.
    rest: Vec<(LockKind, LockRange)>,
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

    /// Takes the response to a request of an operation that was interrupted. Returns whose request it was.
    fn answered(&mut self, token: OpToken, is_granted: bool) -> Option<(Ino, LockOwner)> {
        self.owners.iter_mut().find_map(|(key, settling)| {
            let at = settling.unanswered.iter().position(|(of, _)| *of == token)?;
            let (_, range) = settling.unanswered.remove(at);
            if is_granted {
                settling.doubt(range);
            }
            Some(*key)
        })
    }
}

impl Settling {
    fn doubt(&mut self, range: LockRange) {
        let before = self.doubtful.unwrap_or(range);
        let (start, end) = (before.start.min(range.start), before.end.max(range.end));
        self.doubtful = Some(LockRange { start, end });
    }

    /// Doubts everything that was asked for.
    fn doubt_all(&mut self) {
        for (_, range) in std::mem::take(&mut self.unanswered) {
            self.doubt(range);
        }
        if let Some(Restoring { range, .. }) = self.restoring.take() {
            self.doubt(range);
        }
    }
}

impl Client {
    /// Withdraws the request of a lock operation that was interrupted, if it has made one. `waits`: the request may wait at the server, from
    /// where it is withdrawn with all others of the owner on the file; other requests are answered soon.
    pub(super) fn withdraw_lock(
        &mut self,
        clock: &Clock,
        token: OpToken,
        (ino, owner, range): (Ino, LockOwner, LockRange),
        waits: bool,
    ) {
        if self.calls.find(&Purpose::Operation(token)).is_some() {
            let settling = self.unsettled.owners.entry((ino, owner)).or_default();
            settling.unanswered.push((token, range));
            if waits && let Some(request) = self.cancel_request(ino, owner) {
                self.call(clock, Purpose::CancelLock(ino, owner), request);
            }
        } else if self.session.state != SessionState::Live && self.for_session.contains(&token) {
            // It may have made a request before the client greeted again, and the response was lost.
            self.unsettled.owners.entry((ino, owner)).or_default().doubt(range);
        }
    }

    fn cancel_request(&self, ino: Ino, owner: LockOwner) -> Option<SessionRequest> {
        let file = self.nodes.get(&ino)?.handle;
        Some(SessionRequest::CancelLock { file, owner })
    }

    /// Withdraws a request again that has not been answered yet: it may have come to the server behind its withdrawal.
    pub(super) fn lock_cancelled(&mut self, clock: &Clock, ino: Ino, owner: LockOwner) {
        let settling = self.unsettled.owners.get(&(ino, owner));
        if settling.is_some_and(|settling| !settling.unanswered.is_empty())
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
        let is_granted = *response == Response::Locked(None);
        if let Some((ino, owner)) = self.unsettled.answered(token, is_granted) {
            self.settle_locks(clock, ino, owner);
        }
    }

    /// Has the server know what all owners have, in a session that is used from now on: it may have answered calls of before.
    pub(super) fn restore_all_locks(&mut self, clock: &Clock) {
        self.unsettled.owners.values_mut().for_each(Settling::doubt_all);
        let owners: Vec<_> = self.unsettled.owners.keys().copied().collect();
        for (ino, owner) in owners {
            self.settle_locks(clock, ino, owner);
        }
    }

    /// Goes on with an owner's locks, once all requests are answered and nothing is being restored.
    fn settle_locks(&mut self, clock: &Clock, ino: Ino, owner: LockOwner) {
        let Some(settling) = self.unsettled.owners.get_mut(&(ino, owner)) else { return };
        if !settling.unanswered.is_empty() || settling.restoring.is_some() {
            return;
        }
        if let Some(range) = settling.doubtful.take() {
            settling.restoring = Some(Restoring { range, rest: Vec::new() });
            self.locks_changed(ino, owner);
            self.restore_next(clock, ino, owner);
        } else {
            self.unsettled.owners.remove(&(ino, owner));
            self.ready.extend(self.unsettled.waiting.drain(..));
        }
    }

    /// Has an owner's locks restored as they are now, if they are being restored.
    pub(super) fn locks_changed(&mut self, ino: Ino, owner: LockOwner) {
        let held = self.locks.get(&ino).map_or(&[][..], Vec::as_slice);
        if let Some(settling) = self.unsettled.owners.get_mut(&(ino, owner))
            && let Some(restoring) = &mut settling.restoring
        {
            restoring.rest = parts(held, owner, restoring.range);
            restoring.rest.reverse();
        }
    }

    fn restore_next(&mut self, clock: &Clock, ino: Ino, owner: LockOwner) {
        let Some(settling) = self.unsettled.owners.get_mut(&(ino, owner)) else { return };
        let next = settling.restoring.as_mut().and_then(|restoring| restoring.rest.pop());
        if let Some((kind, range)) = next
            && let Some(node) = self.nodes.get(&ino)
        {
            let file = node.handle;
            let lock = Lock { file, owner, kind, range, wait: false, reclaim: false };
            let part = HeldLock { holder: owner, kind, range };
            self.call(clock, Purpose::Restore(ino, part), SessionRequest::Lock(lock));
        } else {
            settling.restoring = None;
            self.settle_locks(clock, ino, owner);
        }
    }

    /// Takes the response to one part.
    pub(super) fn lock_restored(
        &mut self,
        clock: &Clock,
        (ino, part): (Ino, HeldLock<LockOwner>),
        response: &Response,
    ) {
        let owner = part.holder;
        if part.kind != LockKind::Unlock && *response != Response::Locked(None) {
            if let Some(locks) = self.locks.get_mut(&ino) {
                replace(locks, HeldLock { kind: LockKind::Unlock, ..part });
            }
            self.lock_lost(ino, owner);
        }
        self.restore_next(clock, ino, owner);
    }
}

/// Returns all parts of a range in their order, with what an owner has there.
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
