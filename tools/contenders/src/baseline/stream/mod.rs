//! How are messages exchanged on a connection that carries bytes?
//!
//! Each message is a length (4 bytes, big-endian) and its payload, and leaves in one call of `send`, the
//! two being next to each other in memory (a gathering `sendmsg` of both was as fast over TCP: 6.30 and 6.33 us
//! there and back). Receivers take whatever has arrived in one call. One connection, one thread on each
//! side.
//!
//! Whose connection it is, and how its sockets are set up, is the contenders' business: `tcp` and `unix`. On a
//! socket that keeps packets apart each `send` is a packet, so it carries one message.

pub(crate) mod client;
pub(crate) mod frames;
pub(crate) mod memory;
pub mod server;

/// How many messages one `send` carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sends {
    /// One: every message leaves by itself, as most RPC layers do it.
    One,
    /// All that are ready, as a pipelining client and server do it.
    Ready,
}

impl Sends {
    /// In words.
    pub(super) const fn settings(self) -> &'static str {
        match self {
            Self::One => "one send per message",
            Self::Ready => "one send for all messages that are ready",
        }
    }
}
