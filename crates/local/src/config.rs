//! How is this path set up?

use crate::credentials::PeerPolicy;
use crate::layout::RingSizes;
use crate::limits::LocalLimits;

/// Settings of an endpoint's pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalConfig {
    /// Rings of the pairs that this side asks for. It pays for the memory.
    pub sizes: RingSizes,
    /// The largest rings that clients may ask for.
    pub max_sizes: RingSizes,
    /// What a pair may hold.
    pub limits: LocalLimits,
    /// Which peers are let in, and connected to.
    pub trust: PeerPolicy,
    /// What peers are told of who this is, such as the incarnation of the endpoint. Means nothing here.
    pub identity: u64,
    /// Pairs at a time, in both roles together.
    pub max_pairs: usize,
}

impl Default for LocalConfig {
    /// The default sizes, 4 MiB at most for a ring that a client asks for, peers of the same user, 1024 pairs.
    fn default() -> Self {
        Self {
            sizes: RingSizes::default(),
            max_sizes: RingSizes { short: 4 << 20, bulk: 4 << 20 },
            limits: LocalLimits::default(),
            trust: PeerPolicy::default(),
            identity: 0,
            max_pairs: 1024,
        }
    }
}
