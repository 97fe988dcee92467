//! What does something cost here, as can be told within a second?
//!
//! What depends on the moment is shown beside what was found, and never decides how bad that is.

pub(super) mod burst;
pub(super) mod pace;
pub(super) mod segments;
pub(super) mod stall;
pub(super) mod wakeup;
