//! What does apus achieve, compared with what else there is?

pub mod clock;
mod error;
pub mod machine;
mod polling;
mod progress;
pub mod result;
pub mod stats;

pub use error::Error;
pub use polling::{Poll, PollError};
