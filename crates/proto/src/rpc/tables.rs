//! The tables of RPCs and peers, with the operations that concern both.
//!
//! # Invariants
//!
//! - **TABLES-1** `by_peer` names exactly the live RPCs with each peer, each at its `place`. What a packet says about all RPCs
//!   with its sender concerns no others, however many there are.

use super::{NewRpc, Rpc, RpcKey, Rpcs};
use crate::peer::{Peer, PeerId, Peers};
use crate::time::Instant;
use apus_wire::Role;
use slotmap::SecondaryMap;

/// All RPCs and all peers.
#[derive(Debug)]
pub(crate) struct Tables {
    /// RPCs that are live.
    pub(crate) rpcs: Rpcs,
    /// Peers that are known.
    pub(crate) peers: Peers,
    by_peer: SecondaryMap<PeerId, Vec<RpcKey>>,
}

impl Tables {
    pub(crate) fn new(rpcs: Rpcs, peers: Peers) -> Self {
        Self { rpcs, peers, by_peer: SecondaryMap::new() }
    }

    /// Adds an RPC. Its peer's silence is not watched yet.
    #[inline(always)]
    pub(crate) fn create(&mut self, now: Instant, new: NewRpc) -> RpcKey {
        let (peer, ours) = (new.peer, new.side.role());
        let (entry, host) = self.peers.with_host(peer);
        host.rpc_begins(entry, ours);
        entry.last_used = now;
        let Some(of_peer) = self.by_peer.get_mut(peer) else {
            let rpc = self.rpcs.insert(now, 0, new);
            self.by_peer.insert(peer, vec![rpc]);
            return rpc;
        };
        let rpc = self.rpcs.insert(now, of_peer.len() as u32, new);
        of_peer.push(rpc);
        rpc
    }

    /// Takes an RPC out, if it is live. [`Rpcs::recycle`] follows.
    #[inline(always)]
    pub(crate) fn take(&mut self, now: Instant, rpc: RpcKey) -> Option<(Box<Rpc>, &mut Peer)> {
        let entry = self.rpcs.take(rpc)?;
        if let Some(of_peer) = self.by_peer.get_mut(entry.peer) {
            let removed = of_peer.swap_remove(entry.place as usize);
            debug_assert_eq!(removed, rpc, "TABLES-1");
            if let Some(moved) = of_peer.get(entry.place as usize) {
                self.rpcs[*moved].place = entry.place;
            }
        }
        let (peer, host) = self.peers.with_host(entry.peer);
        host.rpc_ends(peer, entry.role());
        peer.last_used = now;
        Some((entry, peer))
    }

    /// The live RPCs with `peer`, in either role.
    pub(crate) fn rpcs_with(&self, peer: PeerId) -> impl Iterator<Item = (RpcKey, &Rpc)> {
        let of_peer = self.by_peer.get(peer).into_iter().flatten();
        of_peer.map(|rpc| (*rpc, &self.rpcs[*rpc]))
    }

    /// Notes that the peer works on `rpc`: it is not asked for a while
    /// (HM `homa_incoming.c` `homa_dispatch_pkts`).
    pub(crate) fn hear(&mut self, now: Instant, peer: PeerId, rpc: RpcKey) {
        let entry = &mut self.rpcs[rpc];
        entry.hear(now);
        let role = entry.role();
        self.hear_peer(now, peer, role);
    }

    /// Notes a BUSY of the peer about `rpc`: it is not asked for a while, and for longer each time.
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

    /// Notes that the peer works on an RPC in which this endpoint has `role`.
    fn hear_peer(&mut self, now: Instant, peer: PeerId, role: Role) {
        let peer = &mut self.peers[peer];
        peer.hear(now);
        if role == Role::Server {
            // It has requests of its session: it lives on, and had forgotten a single one (TIME-15).
            peer.disclaimed = None;
        }
    }
}
