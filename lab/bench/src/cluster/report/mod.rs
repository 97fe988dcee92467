//! The report of a cluster: from runs to findings.
//!
//! ```text
//!   Measured (settings, and the result of every run)
//!      └─▶ Analysis (rows, ratios, curves) ─▶ Findings
//!             └─▶ plots, tables, CSV files
//!   Sweep: one Measured for each value of each setting ─▶ Findings
//! ```

mod analysis;
mod csv;
mod findings;
mod input;
mod kill;
mod plots;
mod rows;
mod sweep;
mod tables;

pub use analysis::Analysis;
pub use input::{Measured, Run, Settings, Transport};
pub use sweep::{Sweep, Varied};
