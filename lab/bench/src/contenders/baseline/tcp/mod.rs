//! Messages on a TCP connection, the usual solution.
//!
//! `stream` describes how messages are framed and exchanged.
//!
//! Settings, and the measured alternatives:
//!
//! - `TCP_NODELAY`: without it, two small messages wait for each other's acknowledgement.
//! - Congestion control `cubic`, or `reno` where `cubic` is not allowed. BBR, the default of some
//!   systems, paces transmission, which has no benefit on loopback: a connection carried 54 to 60
//!   Gbit/s with BBR and 75 with Reno, and 35,000 requests of W4 a second with their echoes with
//!   BBR and 77,000 with Reno. Cubic performs like Reno here.
//! - `SO_SNDBUF` of 256 KiB (the system doubles it). With automatic tuning the buffer grows to
//!   megabytes, and bytes leave the caches between sender and receiver: 61,000 instead of 72,000
//!   requests of W4 a second. 128 or 512 KiB make little difference, nor does a fixed receive
//!   buffer.

pub mod socket;

use std::net::{Ipv4Addr, SocketAddr};

use self::socket::{Settings, listen_at, open};
use super::stream::frames::Inbox;
use super::stream::{SendMode, client, server};
use crate::contenders::contender::Contender;
use apus_measure::plan::{Plan, Replies, Side};
use apus_testbed::error::Error;
use apus_testbed::process::Control;

/// Length-prefixed messages on one connection.
#[derive(Clone, Copy, Debug)]
pub struct Tcp {
    /// Number of messages per `send` call.
    pub sends: SendMode,
    /// Replies of the server.
    pub replies: Replies,
}

impl Contender for Tcp {
    fn name(&self) -> &'static str {
        match self.sends {
            SendMode::One => "tcp",
            SendMode::Ready => "tcp-batched",
        }
    }

    fn settings(&self) -> String {
        format!("one connection, {}, {}", Settings::LOOPBACK, self.sends.settings())
    }

    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        let (listener, address) = listen_at(Ipv4Addr::LOCALHOST.into(), &Settings::LOOPBACK)?;
        control.ready(address)?;
        // The connection inherits the listener's settings.
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
