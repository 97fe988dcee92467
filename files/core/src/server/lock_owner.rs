//! Owners of locks, and the locks that they hold or request.

use crate::held_locks;
use crate::wire::LockOwner;

/// Owner of a lock, among all sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Holder {
    pub(super) session: u64,
    pub(super) owner: LockOwner,
}

impl Holder {
    /// Returns the first owner of a session in the order of owners.
    pub(super) const fn first_of(session: u64) -> Self {
        Self { session, owner: LockOwner { owner: 0, is_flock: false } }
    }
}

/// A lock of a session's owner.
pub(super) type HeldLock = held_locks::HeldLock<Holder>;
