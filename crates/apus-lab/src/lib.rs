//! What does apus achieve, compared with what else there is?

pub mod agent;
pub mod baseline;
pub mod bench;
pub mod clock;
pub mod contender;
pub mod demo;
mod error;
pub mod machine;
pub mod meter;
mod polling;
pub mod process;
mod progress;
pub mod result;
pub mod stats;

pub use error::Error;
pub use polling::{Poll, PollError};
