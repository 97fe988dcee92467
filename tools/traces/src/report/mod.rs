//! Which questions can be asked of traces?
//!
//! Each module answers one, from [`Merged`](crate::merge::Merged) traces; its head says what it shows, from which
//! events, and how each number comes about. What they give is data; how it looks is the business of who shows it.
//!
//! ```text
//!   timeline   where do the microseconds of short RPCs go?
//!   delays     how long do packets take, stage by stage?
//!   rtt        how are round trips distributed, and what have the slowest in common?
//!   rpcs       what happened to each RPC?
//!   grants     is enough granted, and does the link idle while work waits?
//!   handoffs   how long does it take from ready to running, and who woke whom?
//!   lost       what was asked for again, and why?
//!   cores      when did nothing run?
//! ```
//!
//! All times are nanoseconds, but in JSON, where names ending with `_us` are microseconds.

pub mod cores;
pub mod delays;
mod distribution;
mod filter;
pub mod grants;
pub mod handoffs;
pub mod lost;
pub mod rpcs;
pub mod rtt;
#[cfg(test)]
pub(crate) mod scenario;
pub mod stages;
mod stretches;
#[cfg(test)]
mod tests;
mod threads;
pub mod timeline;

pub use distribution::{Distribution, PERCENTILES, micros};
pub use filter::Filter;
