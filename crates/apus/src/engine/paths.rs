//! From which of our addresses does a peer know us?

use apus_proto::Profile;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// For an endpoint that listens on all addresses of the host: the address that each peer's last packet
/// was sent to, so that answers leave from there. Empty, and never asked, for others.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// Whether peers are hosts, whatever port their packets come from (kernel profile).
    hosts: bool,
    last: Option<(SocketAddr, IpAddr)>,
    known: HashMap<SocketAddr, IpAddr>,
}

/// Entries after which the table starts anew. Ours: forgetting costs nothing but a system-chosen
/// source address until the peer's next packet.
const MAX_PATHS: usize = 65_536;

impl Paths {
    /// An empty table for peers that are known as `profile` says.
    pub(crate) fn new(profile: Profile) -> Self {
        Self { hosts: profile == Profile::Kernel, ..Self::default() }
    }

    /// A packet from `peer` was sent to `local`.
    pub(crate) fn note(&mut self, mut peer: SocketAddr, local: IpAddr) {
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

    /// The address from which packets to `peer` should leave.
    pub(crate) fn local(&self, peer: SocketAddr) -> Option<IpAddr> {
        match self.last {
            Some((last, local)) if last == peer => Some(local),
            _ if self.known.is_empty() => None,
            _ => self.known.get(&peer).copied(),
        }
    }
}
