//! The sending half of a connection.
//!
//! The stream of messages to one peer, divided into segments when the link is free. Retransmissions
//! or probes that a timer has requested leave first, then lost segments, then new data; the last
//! two as far as the window allows.
//!
//! # Invariants
//!
//! - **SENDER-1**: `una <= next <= end`: acknowledged, sent, submitted.
//! - **SENDER-2**: The scoreboard holds exactly the bytes from `una` to `next`.
//! - **SENDER-3**: A timer runs exactly if the scoreboard is not empty.
//! - **SENDER-4**: A segment is sent exactly if [`Sender::can_send`] returns `true`.

mod half;
mod on_ack;
mod on_timer;
mod recovery;
mod state;
mod timer;

pub(super) use half::Sender;
