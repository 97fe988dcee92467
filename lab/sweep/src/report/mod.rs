//! The report of a sweep: from records to findings.
//!
//! ```text
//!   records ─▶ Setting (what is compared) ─▶ rows, tables, plots ─▶ Findings
//!                  │
//!              reference (what is published)
//! ```

mod findings;
mod plots;
mod reference;
mod setting;
mod tables;

pub use findings::findings;

pub use reference::Reference;
pub use setting::{Contender, Setting};
