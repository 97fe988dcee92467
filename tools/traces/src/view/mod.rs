//! How do the reports on time traces look?
//!
//! [`crate::report`] finds out, and this shows: each report as tables for people, as one JSON object, and as
//! charts. Every report begins with what traces it is about and how their clocks were brought together, since nothing
//! it says is more certain than that.
//!
//! ```text
//!   timeline, delays, rtt, rpcs, grants, handoffs, lost, cores   a report each
//!     └── shown      what every report has: JSON, page, files
//!           └── origin, cells     the traces and clocks; how durations are written
//!   record         traces to look at, of a client and a server on this machine
//! ```

mod cells;
mod cores;
mod delays;
mod grants;
mod handoffs;
mod lost;
mod origin;
mod rpcs;
mod rtt;
mod shown;
mod timeline;

pub use cores::cores;
pub use delays::delays;
pub use grants::grants;
pub use handoffs::handoffs;
pub use lost::lost;
pub use rpcs::rpcs;
pub use rtt::rtt;
pub use shown::Shown;
pub use timeline::timeline;

#[cfg(test)]
mod tests;
