//! Bounds on the resources that handshakes use (HANDSHAKE-2).

/// Bounds on the resources that handshakes use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Handshakes in progress as client, and as many as server; beyond that, the server drops the
    /// oldest.
    pub in_progress: usize,
    /// Number of handshakes in progress as server at which clients must start to present a cookie.
    pub cookies_from: usize,
    /// Peers with keys.
    pub peers: usize,
    /// Handshakes with unknown peers that the server starts per second: 400 use a tenth of a core.
    pub unknown_per_second: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { in_progress: 1_024, cookies_from: 256, peers: 65_536, unknown_per_second: 400 }
    }
}
