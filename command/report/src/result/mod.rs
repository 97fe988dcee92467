//! Results: rows, ratios, comparisons and notes, and the table and the JSON object made from them.
//!
//! Both are rendered from one [`Outcome`], so they cannot contradict each other.

mod comparison;
mod grid;
mod number;
mod outcome;
mod phases;
mod ratio;
mod row;
pub mod table;

pub use comparison::Comparison;
pub use grid::Table;
pub use number::{rounded, short};
pub use outcome::{COMMIT, Outcome, named};
pub use phases::{Incident, PhaseCounts, PhaseEnd, Phases};
pub use ratio::Ratio;
pub use row::{Figure, Row};
