//! Messages while they travel: incoming, outgoing, and their memory.

mod assembly;
mod buffers;
mod complete_message;
mod incoming;
mod outgoing;
mod payload;
mod reservation;
mod retransmission;

pub(crate) use assembly::Inserted;
pub(crate) use buffers::Buffers;
pub(crate) use complete_message::CompleteMessage;
pub(crate) use incoming::MessageIn;
pub(crate) use outgoing::{Cut, MessageOut};
pub use payload::{Payload, PayloadPieces};
pub(crate) use reservation::{Claim, Reservation};
