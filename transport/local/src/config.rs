//! Settings of the path through shared memory.

use crate::memory::layout::RingSizes;
use crate::pair::limits::LocalLimits;
use crate::socket::credentials::PeerPolicy;

/// Settings of the pairs of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalConfig {
    /// Ring sizes of the pairs that this side opens as a client. The client pays for the memory.
    pub sizes: RingSizes,
    /// Largest rings that a client may request.
    pub max_sizes: RingSizes,
    /// Limits of each pair.
    pub limits: LocalLimits,
    /// Which peers this side accepts and connects to.
    pub peer_policy: PeerPolicy,
    /// Number that accepted peers receive in the handshake, such as a random number. This crate
    /// does not interpret it.
    pub identity: u64,
    /// Maximum number of pairs at a time, in both roles together.
    pub max_pairs: usize,
}

impl Default for LocalConfig {
    /// The default ring sizes, at most 4 MiB for a ring that a client requests, peers of the same
    /// user, 1024 pairs.
    fn default() -> Self {
        Self {
            sizes: RingSizes::default(),
            max_sizes: RingSizes { short: 4 << 20, bulk: 4 << 20 },
            limits: LocalLimits::default(),
            peer_policy: PeerPolicy::default(),
            identity: 0,
            max_pairs: 1024,
        }
    }
}
