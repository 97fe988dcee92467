//! Slowdown: how much longer messages took than on an idle path.
//!
//! The figure of the Homa papers, with its charts and tables wherever messages of a workload are measured.
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
