//! How much longer did messages take than they had to?
//!
//! The figure of the Homa papers, and how it is shown wherever messages of a workload are measured.
//!
//! ```text
//!   Slowdowns (one run, every message) ─▶ Summary ─▶ Curve (all runs) ─▶ by_size, cdf, table
//! ```

mod curve;
mod plots;
mod record;
mod summary;

pub use curve::{Curve, table};
pub use plots::{by_size, cdf, colour};
pub use record::{Scale, Slowdowns, tenths};
pub use summary::{CDF, Group, OURS, Percentile, Summary, Tail};
