//! The memory of finished ids that is counted for peers and hosts. Kept by
//! [`id_memory`](super::id_memory).

use super::PeerId;
use std::collections::VecDeque;

/// Memory of the finished ids of a host's peers.
#[derive(Debug, Default)]
pub(super) struct HostIds {
    pub(super) used: u64,
    /// IDS-2.
    pub(super) peers: VecDeque<PeerId>,
}

/// Memory of the finished ids of a peer.
#[derive(Debug, Default)]
pub(super) struct CountedIds {
    pub(super) used: u64,
    pub(super) is_queued: bool,
}
