//! The report of a sweep: from records to findings.
//!
//! ```text
//!   records ─▶ Setting (compared runs) ─▶ rows, tables, plots ─▶ Findings
//!                  │
//!              reference (published figures)
//! ```

mod findings;
mod plots;
mod reference;
mod setting;
mod tables;

pub use findings::findings;

pub use reference::Reference;
pub use setting::{Contender, Setting};
