//! Locks of byte ranges (`fcntl`) and of whole files (`flock`), with waiting and deadlock detection
//! as in Linux.
//!
//! Each request costs a number of steps that is logarithmic in the number of locks and of waiting
//! requests: the locks of a file are in a tree, and a waiting request is checked again only when
//! the byte that it waits for is free. A lock that many requests wait for makes them ready at once;
//! [`Locks::serve_ready`] checks a bounded number of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::wire::{Ino, LockConflict, LockKind};

use super::effect::CallToken;
use super::file_locks::{FileLocks, Obstacle};
use super::lock_owner::{HeldLock, Holder};
use super::settings::{LOCK_CHECKS, LOCKS, MAX_DEADLOCK_OWNERS, WAITING_LOCKS};
use super::shares::{Host, Shares};

/// A request that waits.
#[derive(Debug)]
struct Waiting {
    ino: Ino,
    lock: HeldLock,
    call: CallToken,
    host: Host,
    /// What it waits for; `None` while it is ready.
    obstacle: Option<Obstacle>,
}

/// Outcome of a lock request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LockOutcome {
    Taken,
    Conflict(LockConflict),
    Waits,
    Deadlock,
    Full,
}

/// A request that waited, and its outcome.
pub(super) type Served = (CallToken, LockOutcome);

/// All locks.
#[derive(Debug)]
pub(super) struct Locks {
    files: BTreeMap<Ino, FileLocks>,
    /// Requests by the order of their arrival.
    waiting: BTreeMap<u64, Waiting>,
    /// Requests whose obstacle has gone.
    ready: BTreeSet<u64>,
    /// All waiting requests by owner and file.
    requests: BTreeMap<(Holder, Ino), BTreeSet<u64>>,
    /// Files in which a session has locks, or had some.
    touched: BTreeSet<(u64, Ino)>,
    /// Numbers of requests that wait for each session.
    blocking: BTreeMap<u64, usize>,
    /// Sessions that others have begun or ceased to wait for.
    changed: BTreeSet<u64>,
    hosts: BTreeMap<u64, Host>,
    held_shares: Shares,
    waiting_shares: Shares,
    last_ticket: u64,
    secret: [u8; 16],
}

impl Locks {
    /// Returns a table without locks.
    pub(super) fn new(secret: [u8; 16]) -> Self {
        Self {
            files: BTreeMap::new(),
            waiting: BTreeMap::new(),
            ready: BTreeSet::new(),
            requests: BTreeMap::new(),
            touched: BTreeSet::new(),
            blocking: BTreeMap::new(),
            changed: BTreeSet::new(),
            hosts: BTreeMap::new(),
            held_shares: Shares::new(LOCKS),
            waiting_shares: Shares::new(WAITING_LOCKS),
            last_ticket: 0,
            secret,
        }
    }

    /// Acquires or releases a lock for a session of `host`. `wait` is the request that waits on a
    /// conflict. Adds the outcomes of requests that wait no longer, because the session has given
    /// up a lock for the new one.
    pub(super) fn lock(
        &mut self,
        host: Host,
        ino: Ino,
        wanted: HeldLock,
        wait: Option<CallToken>,
        served: &mut Vec<Served>,
    ) -> LockOutcome {
        let owner = wanted.holder.owner;
        self.hosts.entry(wanted.holder.session).or_insert(host);
        if wanted.kind != LockKind::Unlock {
            // `flock` changes a lock by releasing it first, also where the new one must wait.
            // Source: Linux, flock_lock_inode.
            if owner.is_flock {
                self.apply(ino, HeldLock { kind: LockKind::Unlock, ..wanted });
                self.serve_ready(LOCK_CHECKS, served);
            }
            if let Some(conflict) = self.conflict(ino, &wanted) {
                let Some(call) = wait else { return LockOutcome::Conflict(conflict) };
                return self.wait(host, ino, wanted, call);
            }
        }
        let adds = wanted.kind != LockKind::Unlock
            || self.files.get(&ino).is_some_and(|file| file.divides(&wanted));
        if adds && !self.held_shares.has_room(host, 1) {
            return LockOutcome::Full;
        }
        self.apply(ino, wanted);
        LockOutcome::Taken
    }

    fn wait(&mut self, host: Host, ino: Ino, wanted: HeldLock, call: CallToken) -> LockOutcome {
        let obstacle = self.files.get(&ino).and_then(|file| file.obstacle(&wanted));
        let Some(obstacle) = obstacle else { return LockOutcome::Taken };
        if self.is_deadlock(wanted.holder, obstacle) {
            return LockOutcome::Deadlock;
        }
        if !self.waiting_shares.has_room(host, 1) {
            return LockOutcome::Full;
        }
        self.waiting_shares.add(host, 1);
        self.last_ticket += 1;
        let ticket = self.last_ticket;
        let waiting = Waiting { ino, lock: wanted, call, host, obstacle: None };
        self.waiting.insert(ticket, waiting);
        self.requests.entry((wanted.holder, ino)).or_default().insert(ticket);
        self.wait_for(ticket, ino, obstacle);
        LockOutcome::Waits
    }

    fn wait_for(&mut self, ticket: u64, ino: Ino, obstacle: Obstacle) {
        if let Some(waiting) = self.waiting.get_mut(&ticket) {
            waiting.obstacle = Some(obstacle);
            self.file(ino).wait(ticket, obstacle);
            let session = obstacle.0.session;
            *self.blocking.entry(session).or_default() += 1;
            self.changed.insert(session);
        }
    }

    fn file(&mut self, ino: Ino) -> &mut FileLocks {
        self.files.entry(ino).or_insert_with(|| FileLocks::new(self.secret))
    }

    /// Returns whether an owner has a lock of a range.
    pub(super) fn is_held(&self, ino: Ino, wanted: &HeldLock) -> bool {
        self.files.get(&ino).is_some_and(|file| file.is_held(wanted))
    }

    /// Returns a lock of another owner that conflicts.
    pub(super) fn conflict(&self, ino: Ino, wanted: &HeldLock) -> Option<LockConflict> {
        let conflict = self.files.get(&ino)?.conflict(wanted)?;
        Some(LockConflict { kind: conflict.kind, range: conflict.range })
    }

    /// Returns the session of another owner that has a conflicting lock.
    pub(super) fn blocker(&self, ino: Ino, wanted: &HeldLock) -> Option<u64> {
        self.files.get(&ino)?.conflict(wanted).map(|conflict| conflict.holder.session)
    }

    fn apply(&mut self, ino: Ino, lock: HeldLock) {
        if lock.kind == LockKind::Unlock && !self.files.contains_key(&ino) {
            return;
        }
        let session = lock.holder.session;
        let mut ready = BTreeSet::new();
        let more = self.file(ino).replace(&lock, &mut ready);
        self.note_ready(ready);
        self.note_held(session, more);
        if lock.kind != LockKind::Unlock {
            self.touched.insert((session, ino));
        }
        self.settle(ino, session);
    }

    fn note_held(&mut self, session: u64, more: isize) {
        let Some(host) = self.hosts.get(&session) else { return };
        if more > 0 {
            self.held_shares.add(*host, more.unsigned_abs());
        } else {
            self.held_shares.remove(*host, more.unsigned_abs());
        }
    }

    /// Notes that the obstacles of requests have gone.
    fn note_ready(&mut self, ready: BTreeSet<u64>) {
        for ticket in ready {
            let Some(waiting) = self.waiting.get_mut(&ticket) else { continue };
            if let Some((holder, _)) = waiting.obstacle.take() {
                self.unblock(holder.session);
            }
            self.ready.insert(ticket);
        }
    }

    fn unblock(&mut self, session: u64) {
        if let Some(count) = self.blocking.get_mut(&session) {
            *count -= 1;
            if *count == 0 {
                self.blocking.remove(&session);
            }
        }
        self.changed.insert(session);
    }

    /// Brings the tables that are derived from a file's locks up to date.
    fn settle(&mut self, ino: Ino, session: u64) {
        let Some(file) = self.files.get(&ino) else { return };
        if !file.has(session) {
            self.touched.remove(&(session, ino));
        }
        if file.is_empty() {
            self.files.remove(&ino);
        }
    }

    /// Whether an owner would wait for itself, through others. Like Linux
    /// (`posix_locks_deadlock`), it gives up after a number of owners.
    fn is_deadlock(&self, holder: Holder, obstacle: Obstacle) -> bool {
        if holder.owner.is_flock {
            return false;
        }
        let mut seen = BTreeSet::new();
        let mut blockers = vec![obstacle.0];
        while let Some(blocker) = blockers.pop() {
            super::work::step();
            if blocker == holder {
                return true;
            }
            if seen.len() >= MAX_DEADLOCK_OWNERS {
                return false;
            }
            if seen.insert(blocker) {
                let own = self.requests.range((blocker, Ino(0))..=(blocker, Ino(u64::MAX)));
                let own = own.flat_map(|(_, tickets)| tickets).take(MAX_DEADLOCK_OWNERS);
                let own = own.filter_map(|ticket| self.waiting.get(ticket)?.obstacle);
                blockers.extend(own.map(|(holder, _)| holder));
            }
        }
        false
    }

    /// Checks at most `most` requests whose obstacle has gone, in the order of their arrival, and
    /// adds the outcomes of those that wait no longer.
    pub(super) fn serve_ready(&mut self, most: usize, served: &mut Vec<Served>) {
        for _ in 0..most {
            let Some(ticket) = self.ready.pop_first() else { return };
            super::work::step();
            let Some(waiting) = self.waiting.get(&ticket) else { continue };
            let (ino, lock, call, host) = (waiting.ino, waiting.lock, waiting.call, waiting.host);
            let obstacle = self.files.get(&ino).and_then(|file| file.obstacle(&lock));
            let outcome = match obstacle {
                Some(obstacle) if !self.is_deadlock(lock.holder, obstacle) => {
                    self.wait_for(ticket, ino, obstacle);
                    continue;
                }
                Some(_) => LockOutcome::Deadlock,
                None if self.held_shares.has_room(host, 1) => LockOutcome::Taken,
                None => LockOutcome::Full,
            };
            self.withdraw(ticket);
            if outcome == LockOutcome::Taken {
                self.apply(ino, lock);
            }
            served.push((call, outcome));
        }
    }

    /// Returns whether [`serve_ready`](Self::serve_ready) has something to do.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Removes a waiting request.
    fn withdraw(&mut self, ticket: u64) -> Option<CallToken> {
        let waiting = self.waiting.remove(&ticket)?;
        self.ready.remove(&ticket);
        self.waiting_shares.remove(waiting.host, 1);
        let key = (waiting.lock.holder, waiting.ino);
        if let Some(tickets) = self.requests.get_mut(&key) {
            tickets.remove(&ticket);
            if tickets.is_empty() {
                self.requests.remove(&key);
            }
        }
        if let Some(obstacle) = waiting.obstacle {
            self.file(waiting.ino).withdraw(ticket, obstacle);
            self.unblock(obstacle.0.session);
            self.settle(waiting.ino, waiting.lock.holder.session);
        }
        Some(waiting.call)
    }

    /// Returns whether a request waits for a session's lock.
    pub(super) fn is_blocking(&self, session: u64) -> bool {
        self.blocking.contains_key(&session)
    }

    /// Removes and returns the sessions for which [`is_blocking`](Self::is_blocking) may have
    /// changed.
    pub(super) fn take_changed(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.changed)
    }

    /// Withdraws the waiting requests of an owner for a file.
    pub(super) fn cancel(&mut self, ino: Ino, holder: Holder) -> Vec<CallToken> {
        let tickets = self.requests.get(&(holder, ino)).cloned().unwrap_or_default();
        tickets.into_iter().filter_map(|ticket| self.withdraw(ticket)).collect()
    }

    /// Releases the locks of a session, and returns its waiting requests.
    pub(super) fn end(&mut self, session: u64) -> Vec<CallToken> {
        let requests = self.requests.range((Holder::first_of(session), Ino(0))..);
        let requests = requests.take_while(|((holder, _), _)| holder.session == session);
        let tickets: Vec<u64> = requests.flat_map(|(_, tickets)| tickets).copied().collect();
        let withdrawn = tickets.into_iter().filter_map(|ticket| self.withdraw(ticket)).collect();
        let files = self.touched.range((session, Ino(0))..=(session, Ino(u64::MAX)));
        let files: Vec<Ino> = files.map(|(_, ino)| *ino).collect();
        for ino in files {
            let Some(file) = self.files.get_mut(&ino) else { continue };
            let mut ready = BTreeSet::new();
            let released = file.end(session, &mut ready);
            self.note_ready(ready);
            self.note_held(session, -released.cast_signed());
            self.settle(ino, session);
        }
        self.hosts.remove(&session);
        withdrawn
    }

    /// Forgets a node that does not exist any more, and returns the requests that waited.
    pub(super) fn forget(&mut self, ino: Ino) -> Vec<CallToken> {
        let Some(file) = self.files.remove(&ino) else { return Vec::new() };
        for (session, count) in file.counts() {
            self.note_held(session, -count.cast_signed());
            self.touched.remove(&(session, ino));
        }
        let tickets: Vec<u64> = file.tickets().collect();
        let withdrawn = tickets.into_iter().filter_map(|ticket| self.withdraw(ticket)).collect();
        self.files.remove(&ino);
        withdrawn
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::server::work::steps;
    use crate::wire::{LockOwner, LockRange};

    const FILE: Ino = Ino(5);

    fn host(number: u8) -> Host {
        Host { ip: IpAddr::V4(Ipv4Addr::new(10, 0, 0, number)), user: None }
    }

    fn lock(session: u64, kind: LockKind, start: u64, end: u64) -> HeldLock {
        let holder = Holder { session, owner: LockOwner { owner: 1, is_flock: false } };
        HeldLock { holder, kind, range: LockRange { start, end } }
    }

    fn ask(
        locks: &mut Locks,
        host: Host,
        ino: Ino,
        wanted: HeldLock,
        wait: Option<CallToken>,
    ) -> LockOutcome {
        locks.lock(host, ino, wanted, wait, &mut Vec::new())
    }

    /// Locks `held` single bytes in session 1; in session 2, `waiting` requests wait for all.
    fn crowded(held: u64, waiting: u64) -> Locks {
        let mut locks = Locks::new([7; 16]);
        for at in 0..held {
            let wanted = lock(1, LockKind::Write, 2 * at, 2 * at);
            assert_eq!(ask(&mut locks, host(1), FILE, wanted, None), LockOutcome::Taken);
        }
        for call in 0..waiting {
            let wanted = lock(2, LockKind::Write, 0, u64::MAX);
            let outcome = ask(&mut locks, host(2), FILE, wanted, Some(CallToken(call)));
            assert_eq!(outcome, LockOutcome::Waits);
        }
        locks
    }

    /// Locks and unlocks are as cheap beside thousands of locks and waiting requests as alone.
    #[test]
    fn a_lock_costs_no_product_of_held_and_waiting() {
        let work = |held, waiting| {
            let mut locks = crowded(held, waiting);
            steps(|| {
                let at = held + 1 - held % 2;
                ask(&mut locks, host(3), FILE, lock(3, LockKind::Write, at, at), None);
                locks.conflict(FILE, &lock(3, LockKind::Read, 0, u64::MAX));
                locks.conflict(FILE, &lock(1, LockKind::Write, 0, u64::MAX));
                ask(&mut locks, host(3), FILE, lock(3, LockKind::Unlock, 0, u64::MAX), None);
                ask(&mut locks, host(1), FILE, lock(1, LockKind::Unlock, 0, 0), None);
                locks.serve_ready(8, &mut Vec::new());
                locks.take_changed();
            })
        };
        let (small, large) = (work(64, 16), work(16_000, 1_000));
        assert!(large < 6 * small, "{small} steps grow to {large}");
    }

    /// Requests that wait for one lock are checked a few at a time, and all get their turn.
    #[test]
    fn released_requests_are_served_in_portions() {
        let mut locks = crowded(2, 100);
        assert!(locks.is_blocking(1));
        let mut served = Vec::new();
        for at in [0, 2] {
            ask(&mut locks, host(1), FILE, lock(1, LockKind::Unlock, at, at), None);
            while locks.has_ready() {
                let work = steps(|| locks.serve_ready(8, &mut served));
                assert!(work < 1_000, "{work} steps");
            }
        }
        assert!(!locks.is_blocking(1));
        // All requests are of one owner.
        let calls: Vec<u64> = served.iter().map(|(call, _)| call.0).collect();
        assert_eq!(calls, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_host_leaves_room_for_others() {
        let mut locks = Locks::new([7; 16]);
        let mut fill = |host_number, session| {
            (0..)
                .take_while(|at| {
                    let wanted = lock(session, LockKind::Write, 2 * at, 2 * at);
                    ask(&mut locks, host(host_number), Ino(session), wanted, None)
                        == LockOutcome::Taken
                })
                .count()
        };
        assert_eq!(fill(1, 1), LOCKS.host);
        assert_eq!(fill(1, 2), 0, "another session of the same host");
        assert_eq!(fill(2, 3), LOCKS.host);
        // An unlock adds a range as well if it divides one.
        let mut locks = Locks::new([7; 16]);
        ask(&mut locks, host(1), FILE, lock(1, LockKind::Write, 0, u64::MAX), None);
        let divided = (1..).take_while(|at| {
            let hole = lock(1, LockKind::Unlock, 2 * at, 2 * at);
            ask(&mut locks, host(1), FILE, hole, None) == LockOutcome::Taken
        });
        assert_eq!(divided.count(), LOCKS.host - 1);
        let all = lock(1, LockKind::Unlock, 0, u64::MAX);
        assert_eq!(ask(&mut locks, host(1), FILE, all, None), LockOutcome::Taken);
    }

    /// A conflict that appears while a request waits may close a circle.
    #[test]
    fn a_deadlock_is_noticed_when_the_obstacle_changes() {
        let mut locks = Locks::new([7; 16]);
        for session in 1..=3 {
            let wanted = lock(session, LockKind::Write, session, session);
            assert_eq!(ask(&mut locks, host(1), FILE, wanted, None), LockOutcome::Taken);
        }
        // Session 1 waits for 3, which ends last, and for 2.
        let wanted = lock(1, LockKind::Write, 1, 3);
        assert_eq!(ask(&mut locks, host(1), FILE, wanted, Some(CallToken(1))), LockOutcome::Waits);
        let wanted = lock(2, LockKind::Write, 1, 1);
        assert_eq!(ask(&mut locks, host(1), FILE, wanted, Some(CallToken(2))), LockOutcome::Waits);
        ask(&mut locks, host(1), FILE, lock(3, LockKind::Unlock, 3, 3), None);
        let mut served = Vec::new();
        locks.serve_ready(8, &mut served);
        assert_eq!(served, [(CallToken(1), LockOutcome::Deadlock)]);
    }

    #[test]
    fn a_session_that_ends_leaves_nothing() {
        let mut locks = crowded(100, 10);
        assert_eq!(locks.end(2).len(), 10);
        assert_eq!(locks.end(1).len(), 0);
        assert!(locks.files.is_empty() && locks.touched.is_empty() && locks.requests.is_empty());
        assert!(locks.blocking.is_empty() && locks.held_shares.is_empty());
        assert!(locks.waiting_shares.is_empty() && locks.hosts.is_empty());
    }
}
