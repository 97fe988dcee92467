//! What does a packet do?
//!
//! One file per kind, `on_<kind>`. A handler changes tables and queues answers; it never sends, and
//! never calls another handler's outside. A packet that cannot be used ends as a
//! [`DropReason`](crate::DropReason) that is counted here and nowhere else.

mod on_ack;
mod on_busy;
mod on_cutoffs;
mod on_data;
mod on_freeze;
mod on_grant;
mod on_need_ack;
mod on_request;
mod on_resend;
mod on_response;
mod on_rpc_unknown;

use crate::drop_reason::DropReason;
use crate::peer::{Address, PeerId, Variant};
use crate::rpc::RpcKey;
use crate::transport::{Transport, peer_address};
use apus_wire::{Body, Flags, Header, Packet, Profile, Role};

impl Transport {
    /// Routes a packet to its handler.
    pub(crate) fn receive(&mut self, from: Address, packet: &Packet<'_>) {
        let header = &packet.header;
        if header.dport != self.identity.port {
            // WIRE-4
            self.metrics.count_drop(DropReason::WrongPort);
            self.note_drop(from, packet, DropReason::WrongPort);
            return;
        }
        self.metrics.count_received(packet.body.kind());
        let address = peer_address(self.identity.profile, from);
        let from = Source {
            address,
            peer: self.peers.find(address),
            variant: self.shown_variant(&packet.body),
        };
        self.note_arrival(address, packet);
        if let Some(peer) = from.peer {
            self.note_variant(peer, from.variant);
        }
        let used = match &packet.body {
            Body::Data(data, payload) => self.on_data(from, header, data, payload),
            Body::Grant(grant) => self.on_grant(from, header, grant),
            Body::Resend(resend) => self.on_resend(from, header, resend),
            Body::RpcUnknown => self.on_rpc_unknown(from, header),
            Body::Busy => self.on_busy(from, header),
            Body::Cutoffs(cutoffs) => self.on_cutoffs(from, cutoffs),
            Body::NeedAck => self.on_need_ack(from, header),
            Body::Ack(list) => self.on_ack(from, header, list),
            Body::Freeze => self.on_freeze(from, header),
        };
        if let Err(reason) = used {
            self.metrics.count_drop(reason);
            self.note_drop(address, packet, reason);
        }
    }

    /// WIRE-26: what a packet shows about the module that sent it.
    fn shown_variant(&self, body: &Body<'_>) -> Option<Variant> {
        let is_kernel = self.identity.profile == Profile::Kernel;
        if is_kernel { Variant::shown_by(body) } else { None }
    }

    /// WIRE-26: the peer's module can do what its packet has shown, if that showed anything.
    pub(crate) fn note_variant(&mut self, peer: PeerId, shown: Option<Variant>) {
        if let Some(variant) = shown {
            self.peers[peer].variant = variant;
        }
    }

    /// BAD-8: the peer and the RPC that a packet is about, if both are known and the packet agrees
    /// with the RPC's session.
    fn rpc_of(
        &self,
        from: Source,
        header: &Header,
        proof: Proof,
    ) -> Result<(PeerId, RpcKey), DropReason> {
        let (peer, rpc) = self.find_rpc(from, header).ok_or(DropReason::UnknownRpc)?;
        let session = self.rpcs[rpc].session();
        let agrees = match header.udp() {
            None => true,
            Some(fields) if fields.flags.contains(Flags::SESSION) => {
                session == Some(fields.incarnation)
                    || (session.is_none() && proof == Proof::NotContradicting)
            }
            Some(_) => proof == Proof::NotContradicting,
        };
        if agrees { Ok((peer, rpc)) } else { Err(DropReason::StaleSession) }
    }

    /// The same without looking at the session.
    fn find_rpc(&self, from: Source, header: &Header) -> Option<(PeerId, RpcKey)> {
        let peer = from.peer?;
        let id = header.sender_id;
        let rpc = self.rpcs.find(peer, id.client_id(), id.sender().peer())?;
        Some((peer, rpc))
    }

    /// The peer works on `rpc`: no need to ask it for a while (row P-21).
    fn hear(&mut self, peer: PeerId, rpc: RpcKey) {
        let now = self.now();
        self.rpcs[rpc].hear(now);
        let peer = &mut self.peers[peer];
        peer.resends.answered();
        peer.last_used = now;
    }
}

/// Where a packet came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) address: Address,
    /// The peer at that address, if it was known when the packet came.
    pub(crate) peer: Option<PeerId>,
    /// What the packet shows about the peer's module (kernel profile); for who makes the peer.
    pub(crate) variant: Option<Variant>,
}

/// What a packet must say about the session of its RPC (udp profile).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    /// It carries that session: only the other end, in its present life, can have sent it.
    Session,
    /// It does not carry another one. For packets that also those send who do not know the session
    /// (yet), and that do no harm.
    NotContradicting,
}

/// Our role in the RPC that a packet is about.
const fn our_role(header: &Header) -> Role {
    header.sender_id.sender().peer()
}
