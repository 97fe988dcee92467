//! The state of a server, by owner.
//!
//! The end of a session touches every group: the functions that may end one take all of it. Other
//! functions take the groups that they change.

use super::access::Access;
use super::appended::Appended;
use super::early_locks::EarlyLocks;
use super::locks::Locks;
use super::orphans::Orphans;
use super::output::Output;

/// All groups of state.
#[derive(Debug)]
pub(super) struct Core<S> {
    pub(super) access: Access<S>,
    pub(super) appended: Appended,
    pub(super) locks: Locks,
    pub(super) early_locks: EarlyLocks,
    pub(super) orphans: Orphans,
    pub(super) output: Output,
}
