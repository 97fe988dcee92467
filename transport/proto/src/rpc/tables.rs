//! The tables of RPCs and peers, with the operations that concern both.
//!
//! # Invariants
//!
//! - **TABLES-1** [`Peer::live_rpcs`] names exactly the live RPCs with each peer, each at its
//!   `place`. A packet about all RPCs with its sender visits no others, however many exist.

use super::{NewRpc, Rpc, RpcKey, Rpcs};
use crate::peer::{Peer, PeerId, Peers};
use crate::time::Instant;
use apus_wire::Role;

/// All RPCs and all peers.
#[derive(Debug)]
pub(crate) struct Tables {
    /// RPCs that are live.
    pub(crate) rpcs: Rpcs,
    /// Peers that are known.
    pub(crate) peers: Peers,
}

impl Tables {
    pub(crate) const fn new(rpcs: Rpcs, peers: Peers) -> Self {
        Self { rpcs, peers }
    }

    /// Adds an RPC. Its peer's silence is not watched yet.
    #[inline(always)]
    pub(crate) fn create(&mut self, now: Instant, new: NewRpc) -> RpcKey {
        let (peer, host) = self.peers.with_host(new.peer);
        let others = peer.live_rpcs.len();
        host.rpc_begins(others, new.side.role());
        let rpc = self.rpcs.insert(now, others as u32, new);
        peer.live_rpcs.push(rpc);
        peer.last_used = now;
        rpc
    }

    /// Ends an RPC, if it is live, and removes it from every table. The caller takes its messages
    /// out.
    #[inline(always)]
    pub(crate) fn end(&mut self, now: Instant, rpc: RpcKey) -> Option<(&mut Rpc, &mut Peer)> {
        let Rpc { peer, place, .. } = *self.rpcs.get(rpc)?;
        let (peer, host) = self.peers.with_host(peer);
        let removed = peer.live_rpcs.swap_remove(place as usize);
        debug_assert_eq!(removed, rpc, "TABLES-1");
        if let Some(moved) = peer.live_rpcs.get(place as usize) {
            self.rpcs[*moved].place = place;
        }
        let entry = self.rpcs.end(rpc)?;
        host.rpc_ends(peer.live_rpcs.len(), entry.role());
        peer.last_used = now;
        Some((entry, peer))
    }

    /// Whether no other host has requests here than the host of `peer`: what it uses, it
    /// takes from itself alone.
    pub(crate) fn is_alone(&mut self, peer: PeerId) -> bool {
        self.peers.host_of(peer).server_rpcs as usize == self.rpcs.count(Role::Server)
    }

    /// The live RPCs with `peer`, in either role.
    pub(crate) fn rpcs_with(&self, peer: PeerId) -> impl Iterator<Item = (RpcKey, &Rpc)> {
        self.peers[peer].live_rpcs.iter().map(|rpc| (*rpc, &self.rpcs[*rpc]))
    }

    /// Records that the peer works on `rpc`, which postpones requests to it (HM `homa_incoming.c`
    /// `homa_dispatch_pkts`).
    pub(crate) fn hear(&mut self, now: Instant, peer: PeerId, rpc: RpcKey) {
        let entry = &mut self.rpcs[rpc];
        entry.hear(now);
        let role = entry.role();
        self.hear_peer(now, peer, role);
    }

    /// Records a BUSY of the peer about `rpc`, which postpones requests to it, for longer each
    /// time.
    pub(crate) fn hear_busy(&mut self, now: Instant, peer: PeerId, rpc: RpcKey) {
        let entry = &mut self.rpcs[rpc];
        let (role, asked) = (entry.role(), entry.unanswered());
        entry.hear_busy(now);
        self.hear_peer(now, peer, role);
        // A BUSY about a call of this endpoint responds to a RESEND.
        if role == Role::Server {
            self.peers[peer].need_ack.answered(asked);
        }
    }

    /// Records that the peer works on an RPC in which this endpoint has `role`.
    fn hear_peer(&mut self, now: Instant, peer: PeerId, role: Role) {
        let peer = &mut self.peers[peer];
        peer.hear(now);
        if role == Role::Server {
            // It has requests of its session: it lives on, and had forgotten a single one
            // (TIME-15).
            peer.disclaimed = None;
        }
    }
}
