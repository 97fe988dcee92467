//! The state of a client, by owner.
//!
//! Only handlers of events that concern every group take all of it: responses, callbacks, and the
//! start and end of sessions. Other functions take the groups that they change.

use super::link::Link;
use super::locks::table::Locks;
use super::loss::Losses;
use super::nodes::cache::Cache;
use super::recalls::table::Recalls;
use super::waiting::Waiting;

/// All groups of state, except open directories.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) link: Link,
    pub(super) cache: Cache,
    pub(super) waiting: Waiting,
    pub(super) recalls: Recalls,
    pub(super) locks: Locks,
    pub(super) losses: Losses,
}
