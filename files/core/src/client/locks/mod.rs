//! Locks of files: the table of granted locks, and requests that a signal or a restart of the
//! server has cut off.

pub(super) mod relock;
pub(super) mod restoring;
pub(super) mod table;
pub(super) mod unsettled;
