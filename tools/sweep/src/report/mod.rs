//! What do the records of a sweep say, to people and to machines?
//!
//! ```text
//!   records ─▶ Setting (what is compared) ─▶ Findings ─▶ Outcome ─▶ JSON
//!                  │                            ├─▶ tables ─▶ terminal
//!              reference (what is published)    └─▶ plots ─▶ page, SVG files
//! ```

mod findings;
mod page;
mod plots;
mod reference;
mod setting;
mod tables;

pub use findings::Findings;

pub use reference::Reference;
pub use setting::{Contender, Setting};
