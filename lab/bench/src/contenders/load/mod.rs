//! Load generators.
//!
//! - [`open_loop()`]: requests start when they are due, whether or not earlier requests are
//!   complete; a slow client cannot reduce its load. Experiments compare these results.
//! - [`closed_loop()`]: a fixed number of requests is always outstanding. Measures the highest rate
//!   of a client; [`closed_loop_by_interval()`] shows whether it lasts.
//! - [`unloaded()`]: one request at a time. Measures the best possible time of each size.
//!
//! # Invariants
//!
//! - **LOAD-1**: A latency counts from the due time of the request, not from its actual start (no
//!   coordinated omission).
//! - **LOAD-2**: Sizes and due times depend on the seed alone, so that all contenders carry the
//!   same messages.

mod closed_loop;
mod idle;
mod in_flight;
pub mod open_loop;
pub mod unloaded_rtt;

pub use closed_loop::{closed_loop, closed_loop_by_interval};
pub use idle::Idle;
pub use in_flight::Request;
pub use open_loop::{AsideCounts, OpenLoop, open_loop};
pub use unloaded_rtt::unloaded;
