//! Rate limits for work that packets from unverified addresses can cause.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Shortest time between two NO_KEY packets to one address.
pub(super) const NO_KEY_INTERVAL: Duration = Duration::from_millis(100);

/// A handshake with an unknown peer costs this many units of the bucket.
const HANDSHAKE: u64 = 1_000_000_000;

/// Token bucket for handshakes with unknown peers. It holds one second's worth.
#[derive(Debug)]
pub(super) struct UnknownPeerRate {
    per_second: u64,
    /// Handshakes that may start now, in billionths.
    tokens: u64,
    /// When tokens were last added.
    filled: Duration,
}

impl UnknownPeerRate {
    pub(super) const fn new(per_second: u64, now: Duration) -> Self {
        Self { per_second, tokens: per_second.saturating_mul(HANDSHAKE), filled: now }
    }

    /// Takes the token for one handshake. Returns whether there was one.
    pub(super) fn take(&mut self, now: Duration) -> bool {
        let passed = now.saturating_sub(self.filled).as_nanos();
        let gained = u64::try_from(passed).unwrap_or(u64::MAX).saturating_mul(self.per_second);
        let most = self.per_second.saturating_mul(HANDSHAKE);
        self.tokens = self.tokens.saturating_add(gained).min(most);
        self.filled = now;
        let is_allowed = self.tokens >= HANDSHAKE;
        self.tokens -= if is_allowed { HANDSHAKE } else { 0 };
        is_allowed
    }
}

/// When a NO_KEY was last sent to each address.
#[derive(Debug, Default)]
pub(super) struct NoKeyTimes(BTreeMap<SocketAddr, Duration>);

impl NoKeyTimes {
    /// Returns whether a NO_KEY may be sent to `peer` at `now`, and stores that it is. At most
    /// `capacity` addresses are stored.
    pub(super) fn take(&mut self, now: Duration, peer: SocketAddr, capacity: usize) -> bool {
        let is_recent = |at: &Duration| now.saturating_sub(*at) < NO_KEY_INTERVAL;
        if self.0.get(&peer).is_some_and(is_recent) {
            return false;
        }
        if self.0.len() >= capacity {
            self.0.retain(|_, at| is_recent(at));
            if self.0.len() >= capacity {
                return false;
            }
        }
        self.0.insert(peer, now);
        true
    }
}
