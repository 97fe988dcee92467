//! Cookies: stateless proof that a client receives at its address (SEAL-14).

use crate::negotiation::Negotiator;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Bytes of a cookie.
pub(super) const COOKIE_LEN: usize = 32;

/// Lifetime of a secret: two minutes, as in WireGuard. A cookie is valid for one to two lifetimes.
const SECRET_LIFETIME: Duration = Duration::from_secs(120);

/// The secrets that make and check cookies.
pub(super) struct Cookies {
    present: [u8; 32],
    before: [u8; 32],
    /// When the present secret was drawn.
    since: Duration,
}

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookies(..)")
    }
}

impl Cookies {
    pub(super) fn new(negotiator: &dyn Negotiator, now: Duration) -> Self {
        let (mut present, mut before) = ([0; 32], [0; 32]);
        negotiator.fill_random(&mut present);
        negotiator.fill_random(&mut before);
        Self { present, before, since: now }
    }

    /// Returns the cookie of the client at `peer` for handshake `id`.
    pub(super) fn make(
        &mut self,
        negotiator: &dyn Negotiator,
        peer: SocketAddr,
        id: u64,
        now: Duration,
    ) -> [u8; COOKIE_LEN] {
        self.renew(negotiator, now);
        negotiator.mac(&self.present, &message(peer, id))
    }

    /// Returns whether `cookie` was made for this client and handshake with one of the last two
    /// secrets. The comparison takes the same time for every wrong cookie.
    pub(super) fn check(
        &mut self,
        negotiator: &dyn Negotiator,
        peer: SocketAddr,
        id: u64,
        now: Duration,
        cookie: &[u8],
    ) -> bool {
        self.renew(negotiator, now);
        [self.present, self.before].iter().any(|secret| {
            let expected = negotiator.mac(secret, &message(peer, id));
            cookie.len() == COOKIE_LEN
                && expected.iter().zip(cookie).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
        })
    }

    fn renew(&mut self, negotiator: &dyn Negotiator, now: Duration) {
        if now.saturating_sub(self.since) < SECRET_LIFETIME {
            return;
        }
        self.before = self.present;
        negotiator.fill_random(&mut self.present);
        if now.saturating_sub(self.since) >= 2 * SECRET_LIFETIME {
            negotiator.fill_random(&mut self.before);
        }
        self.since = now;
    }
}

fn message(peer: SocketAddr, id: u64) -> Vec<u8> {
    let mut message = Vec::with_capacity(32);
    match peer.ip() {
        IpAddr::V4(ip) => message.extend(ip.to_ipv6_mapped().octets()),
        IpAddr::V6(ip) => message.extend(ip.octets()),
    }
    message.extend(peer.port().to_be_bytes());
    message.extend(id.to_be_bytes());
    message
}
