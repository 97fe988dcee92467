//! What do the records of a sweep say, to people and to machines?

mod findings;
mod setting;
mod tables;

pub use findings::Findings;
pub use setting::{Contender, Setting};
