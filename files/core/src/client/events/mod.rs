//! Events that concern every group of state: responses, callbacks, time, and the start and end of
//! a session.

pub(super) mod batches;
pub(super) mod callbacks;
pub(super) mod ending;
pub(super) mod greeting;
pub(super) mod responses;
pub(super) mod schedule;
