//! The tables of RPCs and peers, with the operations that concern both.

use super::{NewRpc, Rpc, RpcKey, Rpcs};
use crate::peer::{PeerId, Peers};
use crate::time::Instant;

/// All RPCs and all peers.
#[derive(Debug)]
pub(crate) struct Tables {
    /// RPCs that are live.
    pub(crate) rpcs: Rpcs,
    /// Peers that are known.
    pub(crate) peers: Peers,
}

impl Tables {
    /// Adds an RPC. Its peer's silence is not watched yet.
    #[inline]
    pub(crate) fn create(&mut self, now: Instant, new: NewRpc) -> RpcKey {
        let peer = new.peer;
        let rpc = self.rpcs.insert(|birth| Rpc::new(now, birth, new));
        let entry = &mut self.peers[peer];
        entry.live_rpcs += 1;
        entry.last_used = now;
        rpc
    }

    /// Notes that the peer works on `rpc`: it is not asked for a while
    /// (HM `homa_incoming.c` `homa_dispatch_pkts`).
    pub(crate) fn hear(&mut self, now: Instant, peer: PeerId, rpc: RpcKey) {
        self.rpcs[rpc].hear(now);
        self.peers[peer].hear(now);
    }

    /// Notes a BUSY of the peer about `rpc`: it is not asked for a while, and for longer each time.
    pub(crate) fn hear_busy(&mut self, now: Instant, peer: PeerId, rpc: RpcKey) {
        self.rpcs[rpc].hear_busy(now);
        let peer = &mut self.peers[peer];
        peer.hear(now);
        peer.need_ack.answered();
    }
}
