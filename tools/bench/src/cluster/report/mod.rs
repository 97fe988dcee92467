//! What did a cluster find out, for people and for machines?
//!
//! ```text
//!   Measured (what was asked for, what every run found)
//!      └─▶ Findings ─▶ Outcome ─▶ JSON
//!             ├─▶ tables ─▶ terminal
//!             ├─▶ plots  ─▶ page, SVG files
//!             └─▶ CSV files
//!   Sweep: one Measured for each value of each setting ─▶ curves, tables, JSON
//! ```

mod csv;
mod findings;
mod measured;
mod page;
mod plots;
mod rows;
mod sweep;
mod tables;

pub use findings::Findings;
pub use measured::{Measured, Run, Settings, Transport};
pub use sweep::{Sweep, Varied};
