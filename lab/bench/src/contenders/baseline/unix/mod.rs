//! Messages on a unix socket, the usual solution within a host.
//!
//! `stream` describes how messages are framed and exchanged: one `send` for each message, and one
//! `recv` for all available bytes.
//!
//! - `unix-stream` is SOCK_STREAM. A receiver reads many small messages in one call, and messages
//!   have any length.
//! - `unix-seqpacket` is SOCK_SEQPACKET, which preserves message boundaries: one call for each
//!   message on both sides. A message is one packet and must fit into the socket's buffer. Its
//!   payload has the same length prefix, to keep everything else equal; these 4 bytes have no
//!   measurable cost. Small messages are a tenth faster than on a stream here, spinning (round
//!   trips of 3.0 and 3.3 us, 0.60 and 0.53 M/s).
//!
//! Settings, and the measured alternatives: `SO_SNDBUF` of 512 KiB for streams (the system doubles
//! it, and reduces it to `net.core.wmem_max`). With the default of 208 KiB, 500 kB messages between
//! sleeping sides wait for each other: 40 instead of 80 Gbit/s; requests of 208, 416, 1000 and 4000
//! KiB give 68, 80, 77 and 77. Spinning, and for small messages, it makes no difference. Packet
//! sockets keep the default: a longer packet needs contiguous memory, and the system may lack it.

pub mod socket;

pub use self::socket::UnixKind;

use std::net::SocketAddr;

use self::socket::{STREAM_SEND_BUFFER, enlarge, listen, longest_packet, open};
use super::stream::frames::{Inbox, PREFIX};
use super::stream::{SendMode, client, server};
use crate::contenders::contender::Contender;
use apus_measure::plan::{Plan, Replies, Side};
use apus_testbed::error::Error;
use apus_testbed::process::Control;

/// Length-prefixed messages on one unix socket.
#[derive(Clone, Copy, Debug)]
pub struct Unix {
    /// Kind of the socket.
    pub kind: UnixKind,
    /// Replies of the server.
    pub replies: Replies,
}

/// Returns the receive buffer for this kind.
fn inbox(kind: UnixKind) -> Inbox {
    match kind {
        UnixKind::Stream => Inbox::default(),
        UnixKind::Seqpacket => Inbox::of_packets(longest_packet().unwrap_or_default()),
    }
}

impl Contender for Unix {
    fn name(&self) -> &'static str {
        match self.kind {
            UnixKind::Stream => "unix-stream",
            UnixKind::Seqpacket => "unix-seqpacket",
        }
    }

    fn settings(&self) -> String {
        let kind = match self.kind {
            UnixKind::Stream => format!("SOCK_STREAM, SO_SNDBUF {} KiB", STREAM_SEND_BUFFER >> 10),
            UnixKind::Seqpacket => "SOCK_SEQPACKET, buffers as the system has them".to_owned(),
        };
        format!("one connection, {kind}, {}", SendMode::One.settings())
    }

    fn exclusion(&self, plan: &Plan) -> Option<String> {
        if self.kind == UnixKind::Stream {
            return None;
        }
        // If this fails, opening the socket fails later with the reason.
        let longest = longest_packet().ok()?.saturating_sub(PREFIX);
        let size = plan.size;
        (size > longest).then(|| {
            format!("{size} bytes do not fit into its socket's buffer, which takes {longest}")
        })
    }

    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        let server_socket = listen(self.kind)?;
        control.ready(server_socket.address)?;
        let Some(stream) = server::accept(&server_socket.listener, control.stop())? else {
            return Ok(Side::default());
        };
        enlarge(&stream, self.kind)?;
        let inbox = inbox(self.kind);
        server::serve(&stream, inbox, SendMode::One, self.replies, plan, control.stop())
    }

    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error> {
        let stream = open(server, self.kind)?;
        let inbox = inbox(self.kind);
        client::drive(stream, inbox, SendMode::One, plan, server, control.stop())
    }
}
