//! Transmission: picks the next packets to send, and writes their headers.
//!
//! [`Filler`] serves each `poll_transmit` (SEND-1): control packets first ([`ControlQueue`]), then
//! retransmissions, then messages in SRPT order ([`SendQueue`]) as far as the [`Pacer`] allows.
//! Handlers queue control packets with the methods of [`Output`].

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
