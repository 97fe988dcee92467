//! Locks: owners whose ranges overlap exclude each other, unless both only read.

use apus_fs_core::wire::{LockKind, LockRange};

use crate::Violation;
use crate::history::{Moment, MountId};

/// A lock that was certainly held: from its grant to the start of its release, or to the end of its
/// mount's session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The file.
    pub file: u64,
    /// The owner's mount.
    pub mount: MountId,
    /// The owner, unique in its mount.
    pub owner: u64,
    /// Whether it excludes readers.
    pub kind: LockKind,
    /// Bytes.
    pub range: LockRange,
    /// When it was granted.
    pub from: Moment,
    /// Start of its release; `None`: it was held to the end.
    pub until: Option<Moment>,
}

fn conflict(one: &Hold, other: &Hold) -> bool {
    let is_exclusive = LockKind::Write == one.kind || LockKind::Write == other.kind;
    let ends = |hold: &Hold| hold.until.map_or(u64::MAX, |until| until.0);
    is_exclusive
        && one.file == other.file
        && (one.mount, one.owner) != (other.mount, other.owner)
        && one.range.start <= other.range.end
        && other.range.start <= one.range.end
        && one.from.0 < ends(other)
        && other.from.0 < ends(one)
}

/// Checks all locks of a run.
///
/// # Errors
///
/// Two owners that had conflicting locks at one moment.
pub fn check(holds: &[Hold]) -> Result<(), Violation> {
    for (index, one) in holds.iter().enumerate() {
        if let Some(other) = holds[..index].iter().find(|other| conflict(one, other)) {
            let what = format!("{one:?} was granted beside {other:?}");
            return Err(Violation::new("locks exclude", what));
        }
    }
    Ok(())
}
