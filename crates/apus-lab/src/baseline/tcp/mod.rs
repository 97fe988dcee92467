//! How fast are messages on a TCP connection?
//!
//! What most users have: each message is a length (4 bytes, big-endian) and its payload, and leaves
//! in one call of `send`, the two being next to each other in memory (a gathering `sendmsg` of both
//! was as fast: 6.30 and 6.33 us there and back). Receivers take whatever has arrived in one call.
//!
//! Settings, and what was tried:
//!
//! - `TCP_NODELAY`: without it, two small messages wait for each other's acknowledgement.
//! - Congestion control `cubic`, or `reno` where that may not be chosen. BBR, which some systems use by
//!   default, paces what it sends, and on loopback there is nothing to be paced for: with it a
//!   connection carried 54 to 60 Gbit/s, with Reno 75, and 35,000 requests of W4 a second with their
//!   echoes, with Reno 77,000. Cubic is like Reno here.
//! - `SO_SNDBUF` of 256 KiB (the system doubles it). Left to itself the buffer grows to megabytes,
//!   and bytes fall out of the caches between sender and receiver: 61,000 instead of 72,000 requests
//!   of W4 a second. 128 or 512 KiB make little difference, and nor does a receive buffer of a fixed
//!   size.
//! - One connection, one thread on each side.

mod client;
pub(crate) mod frames;
pub(crate) mod memory;
mod server;
pub(crate) mod socket;

use std::net::SocketAddr;

use crate::contender::{Contender, Plan, Replies, Side};
use crate::error::Error;
use crate::process::Control;

/// Length-prefixed messages on one connection.
#[derive(Clone, Copy, Debug)]
pub struct Tcp {
    /// How many messages one `send` carries.
    pub sends: Sends,
    /// What the server answers.
    pub replies: Replies,
}

/// How many messages one `send` carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sends {
    /// One: every message leaves by itself, as most RPC layers do it.
    One,
    /// All that are ready, as a pipelining client and server do it.
    Ready,
}

impl Contender for Tcp {
    fn name(&self) -> &'static str {
        match self.sends {
            Sends::One => "tcp",
            Sends::Ready => "tcp-batched",
        }
    }

    fn settings(&self) -> String {
        let sends = match self.sends {
            Sends::One => "one send per message",
            Sends::Ready => "one send for all messages that are ready",
        };
        format!("one connection, {}, {sends}", socket::Settings::LOOPBACK)
    }

    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        match self.replies {
            Replies::Echo => server::echo(plan, self.sends, control),
            Replies::Short => server::absorb(plan, control),
        }
    }

    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error> {
        client::drive(plan, self.sends, server, control)
    }
}
