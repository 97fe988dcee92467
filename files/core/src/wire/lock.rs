//! Locks of byte ranges (`fcntl`) and of whole files (`flock`).

use serde::{Deserialize, Serialize};

/// Kind of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LockKind {
    /// Several owners may have it.
    Read,
    /// One owner has it.
    Write,
    /// Releases the owner's locks.
    Unlock,
}

/// Owner of a lock, unique within its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LockOwner {
    /// Number that the client's kernel gives the owner.
    pub owner: u64,
    /// Whether it is a lock of `flock`. Both kinds ignore each other, as on a local file system.
    pub is_flock: bool,
}

/// A range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LockRange {
    /// First byte.
    pub start: u64,
    /// Last byte, inclusive; `u64::MAX` for the end of the file, wherever that is.
    pub end: u64,
}
