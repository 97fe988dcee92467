//! Locks of byte ranges (`fcntl`) and of whole files (`flock`), with waiting and deadlock detection
//! as in Linux.

use std::collections::{BTreeMap, BTreeSet};

use crate::wire::{Ino, LockConflict, LockKind, LockOwner};

use super::effect::CallToken;
use super::settings::{MAX_LOCKS, MAX_WAITING_LOCKS};
use crate::held_locks;

/// Owner of a lock, among all sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Holder {
    pub(super) session: u64,
    pub(super) owner: LockOwner,
}

/// A lock of a session's owner.
pub(super) type HeldLock = held_locks::HeldLock<Holder>;

impl HeldLock {
    fn conflicts(&self, other: &Self) -> bool {
        self.holder != other.holder
            && self.holder.owner.is_flock == other.holder.owner.is_flock
            && (self.kind == LockKind::Write || other.kind == LockKind::Write)
            && self.range.start <= other.range.end
            && other.range.start <= self.range.end
    }
}

/// Numbers of locks that sessions hold.
type Counts = BTreeMap<u64, usize>;

#[derive(Debug, Default)]
struct FileLocks {
    held: Vec<HeldLock>,
    waiting: Vec<(HeldLock, CallToken)>,
}

impl FileLocks {
    fn conflict(&self, wanted: &HeldLock) -> Option<&HeldLock> {
        self.held.iter().find(|held| held.conflicts(wanted))
    }

    /// Replaces an owner's locks in a range.
    fn set(&mut self, wanted: HeldLock, counts: &mut Counts) {
        let before = self.held.len();
        held_locks::replace(&mut self.held, wanted);
        let count = counts.entry(wanted.holder.session).or_default();
        *count = (*count + self.held.len()).saturating_sub(before);
    }

    /// Grants waiting requests, in the order of arrival.
    fn grant(&mut self, granted: &mut Vec<CallToken>, counts: &mut Counts) {
        let mut at = 0;
        while at < self.waiting.len() {
            if self.conflict(&self.waiting[at].0).is_some() {
                at += 1;
                continue;
            }
            let (lock, call) = self.waiting.remove(at);
            self.set(lock, counts);
            granted.push(call);
            // A lock that replaces a stronger one of its owner may permit others.
            at = 0;
        }
    }
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

/// Lock requests that ended because a session has ended.
#[derive(Debug, Default)]
pub(super) struct EndedLocks {
    /// Requests of the session itself.
    pub(super) withdrawn: Vec<CallToken>,
    /// Requests of others that have their lock now.
    pub(super) granted: Vec<CallToken>,
}

/// All locks.
#[derive(Debug, Default)]
pub(super) struct Locks {
    files: BTreeMap<Ino, FileLocks>,
    /// Files with waiting requests of an owner.
    waits: BTreeMap<Holder, BTreeSet<Ino>>,
    counts: Counts,
}

impl Locks {
    /// Acquires or releases a lock. `wait` is the request that waits on a conflict; requests that
    /// are granted as a result are added to `granted`.
    pub(super) fn lock(
        &mut self,
        ino: Ino,
        wanted: HeldLock,
        wait: Option<CallToken>,
        granted: &mut Vec<CallToken>,
    ) -> LockOutcome {
        let owner = wanted.holder.owner;
        if wanted.kind != LockKind::Unlock {
            // `flock` changes a lock by releasing it first, also where the new one must wait.
            // Source: Linux, flock_lock_inode.
            if owner.is_flock {
                self.apply(ino, HeldLock { kind: LockKind::Unlock, ..wanted }, granted);
            }
            if let Some(conflict) = self.conflict(ino, &wanted) {
                let Some(call) = wait else { return LockOutcome::Conflict(conflict) };
                if !owner.is_flock && self.is_deadlock(ino, &wanted) {
                    return LockOutcome::Deadlock;
                }
                if self.waiting_of(wanted.holder.session) >= MAX_WAITING_LOCKS {
                    return LockOutcome::Full;
                }
                self.files.entry(ino).or_default().waiting.push((wanted, call));
                self.waits.entry(wanted.holder).or_default().insert(ino);
                return LockOutcome::Waits;
            }
            if self.counts.get(&wanted.holder.session).is_some_and(|held| *held >= MAX_LOCKS) {
                return LockOutcome::Full;
            }
        }
        self.apply(ino, wanted, granted);
        LockOutcome::Taken
    }

    /// Returns whether an owner has a lock of a range.
    pub(super) fn is_held(&self, ino: Ino, wanted: &HeldLock) -> bool {
        let held = self.files.get(&ino).into_iter().flat_map(|file| &file.held);
        held.filter(|held| held.holder == wanted.holder && held.kind == wanted.kind).any(|held| {
            held.range.start <= wanted.range.start && wanted.range.end <= held.range.end
        })
    }

    /// Returns a lock of another owner that conflicts.
    pub(super) fn conflict(&self, ino: Ino, wanted: &HeldLock) -> Option<LockConflict> {
        let conflict = self.files.get(&ino)?.conflict(wanted)?;
        Some(LockConflict { kind: conflict.kind, range: conflict.range })
    }

    /// Returns the number of requests of a session that wait.
    fn waiting_of(&self, session: u64) -> usize {
        let files: BTreeSet<Ino> =
            self.waits_of(session).flat_map(|(_, files)| files).copied().collect();
        let files = files.iter().filter_map(|ino| self.files.get(ino));
        let waiting = files.flat_map(|file| &file.waiting);
        waiting.filter(|(lock, _)| lock.holder.session == session).count()
    }

    fn waits_of(&self, session: u64) -> impl Iterator<Item = (&Holder, &BTreeSet<Ino>)> {
        let first = Holder { session, owner: LockOwner { owner: 0, is_flock: false } };
        self.waits.range(first..).take_while(move |(holder, _)| holder.session == session)
    }

    fn apply(&mut self, ino: Ino, lock: HeldLock, granted: &mut Vec<CallToken>) {
        if lock.kind == LockKind::Unlock && !self.files.contains_key(&ino) {
            return;
        }
        let file = self.files.entry(ino).or_default();
        file.set(lock, &mut self.counts);
        file.grant(granted, &mut self.counts);
        self.settle(ino);
    }

    /// Brings the tables that are derived from a file's locks up to date.
    fn settle(&mut self, ino: Ino) {
        let Some(file) = self.files.get(&ino) else { return };
        let waiting: BTreeSet<Holder> = file.waiting.iter().map(|(lock, _)| lock.holder).collect();
        self.waits.retain(|holder, files| {
            if !waiting.contains(holder) {
                files.remove(&ino);
            }
            !files.is_empty()
        });
        if file.held.is_empty() && file.waiting.is_empty() {
            self.files.remove(&ino);
        }
    }

    /// Whether an owner would wait for itself, through others.
    fn is_deadlock(&self, ino: Ino, wanted: &HeldLock) -> bool {
        let mut seen = BTreeSet::new();
        let mut blockers = self.blockers(ino, wanted);
        while let Some(blocker) = blockers.pop() {
            if blocker == wanted.holder {
                return true;
            }
            if seen.insert(blocker) {
                for ino in self.waits.get(&blocker).into_iter().flatten() {
                    let waiting = self.files.get(ino).into_iter().flat_map(|file| &file.waiting);
                    let own = waiting.filter(|(lock, _)| lock.holder == blocker);
                    blockers.extend(own.flat_map(|(lock, _)| self.blockers(*ino, lock)));
                }
            }
        }
        false
    }

    /// Returns the sessions whose locks others wait for.
    pub(super) fn blocking(&self) -> BTreeSet<u64> {
        let files: BTreeSet<Ino> = self.waits.values().flatten().copied().collect();
        let files = files.iter().filter_map(|ino| Some((*ino, self.files.get(ino)?)));
        let waiting = files.flat_map(|(ino, file)| {
            file.waiting.iter().flat_map(move |(lock, _)| self.blockers(ino, lock))
        });
        waiting.map(|holder| holder.session).collect()
    }

    pub(super) fn blockers(&self, ino: Ino, wanted: &HeldLock) -> Vec<Holder> {
        let held = self.files.get(&ino).into_iter().flat_map(|file| &file.held);
        held.filter(|held| held.conflicts(wanted)).map(|held| held.holder).collect()
    }

    /// Withdraws the waiting requests of an owner for a file.
    pub(super) fn cancel(&mut self, ino: Ino, holder: Holder) -> Vec<CallToken> {
        let Some(file) = self.files.get_mut(&ino) else { return Vec::new() };
        let waiting = file.waiting.extract_if(.., |(lock, _)| lock.holder == holder);
        let withdrawn = waiting.map(|(_, call)| call).collect();
        self.settle(ino);
        withdrawn
    }

    /// Releases the locks of a session, and withdraws its waiting requests.
    pub(super) fn end(&mut self, session: u64) -> EndedLocks {
        let mut ended = EndedLocks::default();
        let files: Vec<Ino> = self.files.keys().copied().collect();
        for ino in files {
            let Some(file) = self.files.get_mut(&ino) else { continue };
            let waiting = file.waiting.extract_if(.., |(lock, _)| lock.holder.session == session);
            let before = ended.withdrawn.len();
            ended.withdrawn.extend(waiting.map(|(_, call)| call));
            let held = file.held.len();
            file.held.retain(|held| held.holder.session != session);
            if file.held.len() < held || ended.withdrawn.len() > before {
                file.grant(&mut ended.granted, &mut self.counts);
                self.settle(ino);
            }
        }
        self.counts.remove(&session);
        ended
    }

    /// Forgets a node that does not exist any more, and returns the requests that waited.
    pub(super) fn forget(&mut self, ino: Ino) -> Vec<CallToken> {
        let Some(file) = self.files.get_mut(&ino) else { return Vec::new() };
        for held in file.held.drain(..) {
            if let Some(count) = self.counts.get_mut(&held.holder.session) {
                *count -= 1;
            }
        }
        let withdrawn = file.waiting.drain(..).map(|(_, call)| call).collect();
        self.settle(ino);
        withdrawn
    }
}
