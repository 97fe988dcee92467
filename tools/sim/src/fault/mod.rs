//! What goes wrong in a fabric, besides what its switches do?
//!
//! ```text
//!   Settings   how often packets are lost, corrupted, doubled, late         drawn once
//!   Outages    who is cut off, paused, down, and when                       drawn once
//!   Trouble    decides about each packet at its last link                   while the fabric runs
//! ```
//!
//! Everything strikes where a packet has passed the last link and not yet its host's software: one place, and
//! a fabric without faults pays one branch for it. All chance comes from a stream of its own, so that faults
//! change neither what is sent nor which ways packets take until they strike.

mod burst;
mod counters;
mod outages;
mod settings;
mod trouble;

pub use counters::Counters;
pub use outages::{Crash, Outages, Partition, Pause};
pub use settings::{Corruption, Settings};
pub(crate) use trouble::{Lot, State, Trouble};
