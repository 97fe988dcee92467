//! Results of the handshakes: packets to send, and changes of the peers' keys.

use crate::association::{Opener, Sealer};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A packet of a handshake, to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Destination.
    pub to: SocketAddr,
    /// Local address to send from; `None` lets the system choose.
    pub from: Option<IpAddr>,
    /// The packet, starting with its header.
    pub packet: Vec<u8>,
}

/// Keys with a peer, from a complete handshake. They replace its earlier keys.
#[derive(Debug)]
pub struct Established {
    /// The peer.
    pub peer: SocketAddr,
    /// Seals packets to the peer.
    pub sealer: Sealer,
    /// Opens packets from the peer.
    pub opener: Opener,
    /// The life of the peer, if it was the server of the handshake and has stated it.
    pub server_life: Option<ServerLife>,
}

/// The life of a server, as it has stated it in a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLife {
    /// Its age.
    pub age: Duration,
    /// When the handshake started here; the server has stated its age later.
    pub asked: Duration,
    /// Whether the earlier keys of the peer belonged to another life of it.
    pub is_other: bool,
}

/// A change of a peer's keys.
#[derive(Debug)]
pub enum SealEvent {
    /// The peer has new keys.
    Established(Box<Established>),
    /// The peer's keys of this session must not be used any more.
    Removed {
        /// The peer.
        peer: SocketAddr,
        /// The session of the keys.
        session: u64,
    },
    /// A READY packet, to be sealed with the keys of the peer's present session, and sent before
    /// the datagrams of [`Handshakes::poll_transmit`](super::Handshakes::poll_transmit): the peer
    /// starts a handshake although this end has keys.
    Known {
        /// The packet, without its tag.
        ready: Datagram,
        /// The session of the keys.
        session: u64,
    },
}

/// Packets and events that the caller has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) packets: VecDeque<Datagram>,
    pub(super) events: VecDeque<SealEvent>,
}

impl Output {
    /// Queues packets to `to`.
    pub(super) fn send(&mut self, to: SocketAddr, from: Option<IpAddr>, packets: Vec<Vec<u8>>) {
        self.packets.extend(packets.into_iter().map(|packet| Datagram { to, from, packet }));
    }

    /// Reports that the keys of `peer` in `session` must not be used any more.
    pub(super) fn report_removed(&mut self, peer: SocketAddr, session: u64) {
        self.events.push_back(SealEvent::Removed { peer, session });
    }
}
