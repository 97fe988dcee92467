//! When must something be done although no packet comes?
//!
//! [`Silence`] watches RPCs whose peer should be talking; [`Deadlines`] holds the callers' limits.
//! What is done when a timer fires is in the files named after it; the tables here only say when.

mod ask;
mod deadlines;
mod fire;
mod reap;
mod silence;

pub(crate) use deadlines::Deadlines;
pub use fire::TimeoutReason;
pub(crate) use fire::look_period;
pub(crate) use reap::Reaper;
pub(crate) use silence::{Link, Silence};
