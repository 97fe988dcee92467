//! Locks of fcntl(2) and flock(2), and the requests that wait for them.

use apus_fuse::codec::{FileLock, Lock};

/// `F_WRLCK` and `F_UNLCK`.
const WRITE: u32 = 1;
pub(crate) const UNLOCK: u32 = 2;

/// A lock that is held.
struct Held {
    node: u64,
    owner: u64,
    flock: bool,
    lock: FileLock,
}

/// A request that waits for a lock.
pub(crate) struct Waiting {
    pub(crate) unique: u64,
    pub(crate) node: u64,
    pub(crate) lock: Lock,
}

#[derive(Default)]
pub(crate) struct Locks {
    held: Vec<Held>,
    pub(crate) waiting: Vec<Waiting>,
}

impl Locks {
    /// The lock that excludes this one.
    pub(crate) fn conflict(&self, node: u64, wanted: &Lock) -> Option<FileLock> {
        let excludes = |held: &&Held| {
            held.node == node
                && held.flock == wanted.flock
                && held.owner != wanted.owner
                && held.lock.start <= wanted.lock.end
                && wanted.lock.start <= held.lock.end
                && (held.lock.kind == WRITE || wanted.lock.kind == WRITE)
        };
        self.held.iter().find(excludes).map(|held| held.lock)
    }

    /// Replaces the owner's locks in the range; false if the lock of another owner conflicts.
    pub(crate) fn set(&mut self, node: u64, wanted: &Lock) -> bool {
        let unlocks = wanted.lock.kind == UNLOCK;
        if !unlocks && self.conflict(node, wanted).is_some() {
            return false;
        }
        let mut rest = Vec::new();
        self.held.retain(|held| {
            let (start, end) = (held.lock.start, held.lock.end);
            let (from, to) = (wanted.lock.start, wanted.lock.end);
            let same =
                held.node == node && held.owner == wanted.owner && held.flock == wanted.flock;
            if !same || end < from || to < start {
                return true;
            }
            let part = |start, end| Held { lock: FileLock { start, end, ..held.lock }, ..*held };
            if start < from {
                rest.push(part(start, from - 1));
            }
            if to < end {
                rest.push(part(to + 1, end));
            }
            false
        });
        self.held.append(&mut rest);
        if !unlocks {
            let (owner, flock, lock) = (wanted.owner, wanted.flock, wanted.lock);
            self.held.push(Held { node, owner, flock, lock });
        }
        true
    }

    /// Ends all locks of an owner.
    pub(crate) fn release(&mut self, node: u64, owner: u64, flock: bool) {
        self.held.retain(|held| (held.node, held.owner, held.flock) != (node, owner, flock));
    }

    /// Takes one waiting request that now has its lock.
    pub(crate) fn take_ready(&mut self) -> Option<u64> {
        let index =
            self.waiting.iter().position(|it| self.conflict(it.node, &it.lock).is_none())?;
        let waiting = self.waiting.remove(index);
        self.set(waiting.node, &waiting.lock);
        Some(waiting.unique)
    }
}
