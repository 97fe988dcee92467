//! Transmission: picks the next packets to send, and writes their headers.
//!
//! [`Filler`] does so for each `poll_transmit` (SEND-1): control packets first ([`ControlQueue`]), then what must be
//! sent again, then messages in SRPT order ([`SendQueue`]) as far as the [`Pacer`] allows. [`Sender`] is what handlers
//! queue control packets with.

mod ask;
mod control;
mod fill;
mod identity;
mod incast;
mod outbound;
mod output;
mod pacer;
mod resend_queue;
mod reservation;
mod send_queue;

mod spray;
mod transmit;

pub(crate) use fill::Filler;
pub(crate) use identity::Identity;
pub(crate) use outbound::Outbound;
pub(crate) use output::Output;
pub(crate) use send_queue::SendQueue;

pub use transmit::Transmit;
