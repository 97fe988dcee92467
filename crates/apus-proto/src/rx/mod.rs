//! What does a packet do?
//!
//! One file per kind, `on_<kind>`. A handler changes tables and queues answers; it never sends, and
//! never calls another handler's outside. A packet that cannot be used ends as a
//! [`DropReason`](crate::DropReason) that is counted here and nowhere else.

mod on_ack;
mod on_busy;
mod on_cutoffs;
mod on_data;
mod on_grant;
mod on_need_ack;
mod on_resend;
mod on_rpc_unknown;

use crate::drop_reason::DropReason;
use crate::peer::{Address, PeerId};
use crate::rpc::RpcId;
use crate::transport::{Transport, peer_address, session_agrees};
use apus_wire::{Body, Header, Packet, Role};

impl Transport {
    /// Routes a packet to its handler.
    pub(crate) fn receive(&mut self, from: Address, packet: &Packet<'_>) {
        let header = &packet.header;
        if header.dport != self.identity.port {
            self.metrics.count_drop(DropReason::WrongPort);
            return;
        }
        self.metrics.count_received(packet.body.kind());
        let from = peer_address(self.identity.profile, from);
        let used = match &packet.body {
            Body::Data(data, payload) => self.on_data(from, header, data, payload),
            Body::Grant(grant) => self.on_grant(from, header, grant),
            Body::Resend(resend) => self.on_resend(from, header, resend),
            Body::RpcUnknown => self.on_rpc_unknown(from, header),
            Body::Busy => self.on_busy(from, header),
            Body::Cutoffs(cutoffs) => self.on_cutoffs(from, cutoffs),
            Body::NeedAck => self.on_need_ack(from, header),
            Body::Ack(list) => self.on_ack(from, header, list),
            // Counted; time traces are not part of the core (row P-20).
            Body::Freeze => Ok(()),
        };
        if let Err(reason) = used {
            self.metrics.count_drop(reason);
        }
    }

    /// The peer and the RPC that a packet is about, if both are known and the packet belongs to the
    /// RPC's session.
    fn rpc_of(&mut self, from: Address, header: &Header) -> Result<(PeerId, RpcId), DropReason> {
        let (peer, rpc) = self.find_rpc(from, header).ok_or(DropReason::UnknownRpc)?;
        let entry = &self.rpcs[rpc];
        let session = match entry.server() {
            Some(server) => Some(server.session),
            None => entry.client().and_then(|client| client.session),
        };
        if !session_agrees(session, header.udp()) {
            return Err(DropReason::StaleSession);
        }
        Ok((peer, rpc))
    }

    /// The same without looking at the session.
    fn find_rpc(&mut self, from: Address, header: &Header) -> Option<(PeerId, RpcId)> {
        let peer = self.peers.find(from)?;
        let id = header.sender_id;
        let rpc = self.rpcs.find(peer, id.client_id(), id.sender().peer())?;
        Some((peer, rpc))
    }

    /// The peer works on `rpc`: no need to ask it for a while (row P-21).
    fn hear(&mut self, peer: PeerId, rpc: RpcId) {
        let now = self.now();
        self.rpcs[rpc].hear(now);
        let peer = &mut self.peers[peer];
        peer.resends.answered();
        peer.last_used = now;
    }
}

/// Our role in the RPC that a packet is about.
const fn our_role(header: &Header) -> Role {
    header.sender_id.sender().peer()
}
