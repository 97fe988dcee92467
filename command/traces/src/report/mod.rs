//! Reports on merged traces, one module for each report.
//!
//! Each report is built from [`MergedTraces`](crate::merge::MergedTraces); the head of its module
//! lists the events and the definition of each number. Reports contain data; [`crate::view`]
//! renders them.
//!
//! ```text
//!   timeline   stages of short RPCs
//!   delays     stages of packets
//!   rtt        round trips, and common properties of the slowest
//!   rpcs       single RPCs
//!   grants     granted bytes, and idle links
//!   handoffs   delays from ready to running
//!   losses     causes of RESENDs
//!   cores      gaps during which a thread did not run
//!   files      operations of the file service
//! ```
//!
//! All times are in nanoseconds. In JSON, names ending with `_us` are in microseconds.

pub mod cores;
pub mod delays;
mod distribution;
pub mod files;
mod filter;
pub mod grants;
pub mod handoffs;
mod intervals;
pub mod losses;
pub mod rpcs;
pub mod rtt;
#[cfg(test)]
pub(crate) mod scenario;
pub mod stages;
#[cfg(test)]
mod tests;
mod thread_records;
pub mod timeline;

pub use distribution::{Distribution, PERCENTILES, micros};
pub use filter::RpcFilter;
