//! Trust: which peers are served without encryption.
//!
//! Packets without encryption can be read and forged by every machine on their path. So a server
//! serves peers on its own host, whose packets never leave it, and peers in networks that its
//! administrator names.

mod network;

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr, UdpSocket};

pub use network::{Network, ParseNetworkError};

/// Number of addresses whose answer is remembered. Chosen by us: more than the clients of a server,
/// and 50 kB.
const REMEMBERED: usize = 1024;

/// Verdict on a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Whether its requests are served.
    pub is_trusted: bool,
    /// Whether the address was not among the remembered answers.
    pub is_new: bool,
}

/// Decides which peers are trusted, and remembers the answers.
#[derive(Debug, Default)]
pub struct Trust {
    networks: Vec<Network>,
    answers: HashMap<IpAddr, bool>,
    /// Addresses of this host whose user is not served, and was reported.
    refused: HashSet<SocketAddr>,
}

impl Trust {
    /// Trusts this host and `networks`.
    #[must_use]
    pub fn new(networks: Vec<Network>) -> Self {
        Self { networks, ..Self::default() }
    }

    /// Returns whether the refusal of a peer's user is to be reported: once for each address.
    pub(crate) fn reports_refusal(&mut self, peer: SocketAddr) -> bool {
        if self.refused.len() >= REMEMBERED {
            return false;
        }
        self.refused.insert(peer)
    }

    /// Returns whether a peer is trusted.
    pub fn judge(&mut self, peer: SocketAddr) -> Judgement {
        let ip = peer.ip().to_canonical();
        if let Some(&is_trusted) = self.answers.get(&ip) {
            return Judgement { is_trusted, is_new: false };
        }
        let is_trusted = self.networks.iter().any(|network| network.contains(ip)) || is_here(peer);
        // An attacker that forges source addresses costs some system calls, and no memory.
        if self.answers.len() >= REMEMBERED {
            self.answers.clear();
        }
        self.answers.insert(ip, is_trusted);
        Judgement { is_trusted, is_new: true }
    }
}

/// Returns whether an address belongs to this host. The kernel drops packets from outside that
/// claim such an address (`net/ipv4/fib_frontend.c` `__fib_validate_source`).
pub(crate) fn is_here(mut peer: SocketAddr) -> bool {
    let ip = peer.ip().to_canonical();
    if ip.is_loopback() {
        return true;
    }
    if ip.is_unspecified() || ip.is_multicast() {
        return false;
    }
    // The scope of a link-local address remains.
    peer.set_port(0);
    if peer.ip() != ip {
        peer = SocketAddr::new(ip, 0);
    }
    UdpSocket::bind(peer).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(trust: &mut Trust, peer: &str) -> bool {
        trust.judge(peer.parse().unwrap()).is_trusted
    }

    /// FSRUN-1.
    #[test]
    fn this_host_and_named_networks_are_trusted() {
        let mut trust = Trust::new(vec!["10.7.0.0/16".parse().unwrap()]);
        for peer in ["127.0.0.1:9", "127.8.8.8:9", "[::1]:9", "[::ffff:127.0.0.1]:9"] {
            assert!(judge(&mut trust, peer), "{peer}");
        }
        assert!(judge(&mut trust, "10.7.255.1:4000"));
        assert!(judge(&mut trust, "[::ffff:10.7.0.1]:4000"));
        // Addresses for documentation (RFC 5737, RFC 3849) belong to no host.
        for peer in ["192.0.2.1:9", "[2001:db8::1]:9", "0.0.0.0:9", "10.8.0.1:9"] {
            assert!(!judge(&mut trust, peer), "{peer}");
        }
    }

    #[test]
    fn answers_are_remembered_and_memory_is_bounded() {
        let mut trust = Trust::default();
        let peer = "192.0.2.1:9".parse().unwrap();
        assert!(trust.judge(peer).is_new);
        assert!(!trust.judge(peer).is_new);
        for number in 0..3 * REMEMBERED as u32 {
            let ip = IpAddr::from((0xc633_6400 + number).to_be_bytes());
            assert!(!trust.judge(SocketAddr::new(ip, 9)).is_trusted);
            assert!(trust.answers.len() <= REMEMBERED);
        }
    }
}
