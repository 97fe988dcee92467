//! What does apus achieve, compared with what else there is?

pub mod clock;
mod error;
pub mod machine;
mod polling;
pub mod process;
mod progress;
pub mod result;
pub mod stats;

pub use error::Error;
pub use polling::{Poll, PollError};
