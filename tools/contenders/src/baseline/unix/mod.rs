//! How fast are messages on a unix socket?
//!
//! What users of one host have. How messages are framed and exchanged is told in `stream`: one `send` for each
//! message, and whatever has arrived is taken in one call of `recv`.
//!
//! - `unix-stream` is SOCK_STREAM. A reader takes many small messages in one call, and messages have any length.
//! - `unix-seqpacket` is SOCK_SEQPACKET, which keeps messages apart: a call for each of them on both sides. A
//!   message is one packet and must fit into the socket's buffer. It carries the same length before the payload,
//!   so that nothing else differs; these 4 bytes cost nothing that can be measured. With small messages it is
//!   a tenth faster than a stream here, spinning (3.0 and 3.3 us there and back, 0.60 and 0.53 M/s).
//!
//! Settings, and what was tried: `SO_SNDBUF` of 512 KiB for streams (the system doubles it, and cuts it to
//! `net.core.wmem_max`). With what it has by itself, 208 KiB, 500 kB messages between sides that sleep wait for each
//! other: 40 instead of 80 Gbit/s; 208, 416, 1000 and 4000 KiB asked for give 68, 80, 77 and 77. Spinning, and for
//! small messages, it makes no difference. Packets are left as they are: a longer one takes memory in one piece,
//! which the system may not have.

pub mod socket;

use std::net::SocketAddr;

use self::socket::{STREAM_SEND_BUFFER, enlarge, listen, longest_packet, open};
use super::stream::frames::{Inbox, PREFIX};
use super::stream::{Sends, client, server};
use crate::contender::{Contender, Plan, Replies, Side};
use apus_testbed::error::Error;
use apus_testbed::process::Control;

/// Length-prefixed messages on one unix socket.
#[derive(Clone, Copy, Debug)]
pub struct Unix {
    /// Whether the socket keeps messages apart.
    pub boundaries: Boundaries,
    /// What the server answers.
    pub replies: Replies,
}

/// Whether a socket keeps messages apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundaries {
    /// It does not: SOCK_STREAM.
    Lost,
    /// It does: SOCK_SEQPACKET.
    Kept,
}

impl Boundaries {
    /// Memory for what arrives.
    fn inbox(self) -> Inbox {
        match self {
            Self::Lost => Inbox::default(),
            Self::Kept => Inbox::of_packets(longest_packet().unwrap_or_default()),
        }
    }
}

impl Contender for Unix {
    fn name(&self) -> &'static str {
        match self.boundaries {
            Boundaries::Lost => "unix-stream",
            Boundaries::Kept => "unix-seqpacket",
        }
    }

    fn settings(&self) -> String {
        let kind = match self.boundaries {
            Boundaries::Lost => format!("SOCK_STREAM, SO_SNDBUF {} KiB", STREAM_SEND_BUFFER >> 10),
            Boundaries::Kept => "SOCK_SEQPACKET, buffers as the system has them".to_owned(),
        };
        format!("one connection, {kind}, {}", Sends::One.settings())
    }

    fn sits_out(&self, plan: &Plan) -> Option<String> {
        if self.boundaries == Boundaries::Lost {
            return None;
        }
        // If the system does not say, it will say why when the socket is opened.
        let longest = longest_packet().ok()?.saturating_sub(PREFIX);
        let size = plan.size;
        (size > longest).then(|| {
            format!("{size} bytes do not fit into its socket's buffer, which takes {longest}")
        })
    }

    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        let place = listen(self.boundaries)?;
        control.ready(place.address)?;
        let Some(stream) = server::accept(&place.listener, control.stop())? else {
            return Ok(Side::default());
        };
        enlarge(&stream, self.boundaries)?;
        let inbox = self.boundaries.inbox();
        server::serve(&stream, inbox, Sends::One, self.replies, plan, control.stop())
    }

    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error> {
        let stream = open(server, self.boundaries)?;
        let inbox = self.boundaries.inbox();
        client::drive(stream, inbox, Sends::One, plan, server, control.stop())
    }
}
