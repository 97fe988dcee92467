//! Bounds on the resources that handshakes use (HANDSHAKE-2).

/// Bounds on the resources that handshakes use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Handshakes in progress as client, and as many as server; beyond that, the server drops the
    /// oldest. One that failed counts until its time is over.
    pub in_progress: usize,
    /// Number of handshakes in progress as server at which clients must start to present a cookie.
    pub cookies_from: usize,
    /// Peers with keys. One host has an eighth of them at most.
    pub peers: usize,
    /// Handshakes that the server starts per second with clients that present a cookie, and at
    /// once: 400 use a tenth of a core. Hosts share them.
    pub proven_per_second: u64,
    /// Handshakes that the server starts per second with other clients, and at once. Further ones
    /// must present a cookie.
    pub unproven_per_second: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            in_progress: 1_024,
            cookies_from: 256,
            peers: 65_536,
            proven_per_second: 400,
            unproven_per_second: 200,
        }
    }
}
