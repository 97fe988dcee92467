//! Local addresses that peers send to.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// The local address of each peer's last packet, for an endpoint that is bound to all addresses of
/// the host: packets to the peer leave from that address. Empty for other endpoints.
#[derive(Debug, Default)]
pub struct Paths {
    /// Whether a peer is a host, regardless of the port.
    hosts: bool,
    last: Option<(SocketAddr, IpAddr)>,
    known: HashMap<SocketAddr, IpAddr>,
}

/// Number of entries at which the table is cleared. Chosen by us: until a peer's next packet the
/// system chooses the source address, which is the only cost.
const MAX_PATHS: usize = 65_536;

impl Paths {
    /// Creates an empty table. With `hosts`, a peer is a host, regardless of the port.
    #[must_use]
    pub fn new(hosts: bool) -> Self {
        Self { hosts, ..Self::default() }
    }

    /// Records that a packet from `peer` was sent to `local`.
    #[inline]
    pub fn note(&mut self, mut peer: SocketAddr, local: IpAddr) {
        if self.hosts {
            peer.set_port(0);
        }
        if self.last == Some((peer, local)) {
            return;
        }
        self.last = Some((peer, local));
        if self.known.len() >= MAX_PATHS {
            self.known.clear();
        }
        self.known.insert(peer, local);
    }

    /// Returns the source address for packets to `peer`; `None` lets the system choose.
    #[must_use]
    #[inline]
    pub fn local(&self, peer: SocketAddr) -> Option<IpAddr> {
        match self.last {
            Some((last, local)) if last == peer => Some(local),
            _ if self.known.is_empty() => None,
            _ => self.known.get(&peer).copied(),
        }
    }
}
