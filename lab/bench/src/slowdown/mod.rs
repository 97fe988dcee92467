//! Slowdown: duration of messages relative to an idle path.
//!
//! The metric of the Homa papers, with charts and tables for all experiments that measure messages
//! of a workload.
//!
//! ```text
//!   Slowdowns (one run, every message) ─▶ Summary ─▶ Curve (all runs) ─▶ plots, table
//! ```

mod curve;
mod plots;
mod record;
mod summary;

pub use curve::{Curve, table};
pub use plots::{by_size, cards, cdf, colour, far_tail};
pub use record::{Scale, Slowdowns, tenths};
pub use summary::{CDF, Group, OURS, Percentile, Summary, Tail};
