//! Messages while they travel: incoming, outgoing, and their memory.

mod arrived;
mod buffers;
mod incoming;
mod outgoing;
mod payload;

pub(crate) use arrived::Arrived;
pub(crate) use buffers::Buffers;
pub(crate) use incoming::{Inserted, MessageIn};
pub(crate) use outgoing::{Cut, MessageOut};
pub use payload::{Payload, PayloadPieces};
