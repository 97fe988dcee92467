//! How fast are messages on a TCP connection?
//!
//! What most users have. How messages are framed and exchanged is told in `stream`.
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

pub mod socket;

use std::net::{Ipv4Addr, SocketAddr};

use self::socket::{Settings, listen_at, open};
use super::stream::frames::Inbox;
use super::stream::{Sends, client, server};
use crate::contender::{Contender, Plan, Replies, Side};
use apus_testbed::error::Error;
use apus_testbed::process::Control;

/// Length-prefixed messages on one connection.
#[derive(Clone, Copy, Debug)]
pub struct Tcp {
    /// How many messages one `send` carries.
    pub sends: Sends,
    /// What the server answers.
    pub replies: Replies,
}

impl Contender for Tcp {
    fn name(&self) -> &'static str {
        match self.sends {
            Sends::One => "tcp",
            Sends::Ready => "tcp-batched",
        }
    }

    fn settings(&self) -> String {
        format!("one connection, {}, {}", Settings::LOOPBACK, self.sends.settings())
    }

    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        let (listener, address) = listen_at(Ipv4Addr::LOCALHOST.into(), &Settings::LOOPBACK)?;
        control.ready(address)?;
        // The listener's settings are inherited.
        let Some(stream) = server::accept(&listener, control.stop())? else {
            return Ok(Side::default());
        };
        server::serve(&stream, Inbox::default(), self.sends, self.replies, plan, control.stop())
    }

    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error> {
        let stream = open(server, &Settings::LOOPBACK)?;
        client::drive(stream, Inbox::default(), self.sends, plan, server, control.stop())
    }
}
