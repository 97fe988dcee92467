//! The output state of an endpoint: packets, events, counters and notes that wait to be fetched.

use super::control::ControlPacket;
use super::outbound::Outbound;
use super::spray::may_spray;
use crate::drop_reason::DropReason;
use crate::observation::Observation;
use crate::peer::{Address, PeerId};
use crate::protocol::Protocol;
use crate::rpc::RpcKey;
use apus_wire::{
    AckList, Body, Features, Flags, Header, Kind, Packet, Profile, Role, SenderId, UdpFields,
};

/// Everything that an endpoint returns to its driver and its application. A handler that takes this
/// group and [`Protocol`] can neither grant nor end an RPC.
#[derive(Debug)]
pub(crate) struct Output {
    /// Packets that wait to leave.
    pub(crate) outbound: Outbound,
    /// Events, counters and notes.
    pub(crate) observation: Observation,
}

impl Output {
    /// Sends a control packet about a live RPC.
    pub(crate) fn control(&mut self, protocol: &Protocol, rpc: RpcKey, body: Body<'_>) {
        self.control_with(protocol, rpc, body, Flags::NONE, 0);
    }

    /// Sends a control packet about a live RPC, with flags of the udp profile and a value in
    /// `sequence`.
    pub(crate) fn control_with(
        &mut self,
        protocol: &Protocol,
        rpc: RpcKey,
        body: Body<'_>,
        flags: Flags,
        sequence: u32,
    ) {
        let rpc = &protocol.tables.rpcs[rpc];
        let peer = &protocol.tables.peers[rpc.peer];
        let mut header = self.outbound.identity.header(&peer.calls, rpc, body.kind());
        header.sequence = sequence;
        let to = peer.address;
        let is_sprayable = body.kind() == Kind::Grant && may_spray(&protocol.config, peer, rpc);
        header.add(flags, if is_sprayable { Features::SPRAYABLE } else { Features::NONE });
        self.enqueue(to, &Packet { header, body });
    }

    /// Answers a packet about an RPC that does not live here: the receiver of `header` becomes the
    /// sender. The session is stated if it is this endpoint's to state. `sequence` is for the udp
    /// profile.
    pub(crate) fn answer(
        &mut self,
        protocol: &mut Protocol,
        to: Address,
        header: &Header,
        body: Body<'_>,
        flags: Flags,
        sequence: u32,
    ) {
        let peers = &mut protocol.tables.peers;
        let peer = peers.find(&to).map(|peer| &peers[peer]);
        let session = match header.sender_id.sender().peer() {
            Role::Client => peer.and_then(|peer| peer.calls.session()),
            Role::Server => peer.and_then(|peer| peer.serving.session()),
        };
        let fields = self.answering_fields(header, session);
        self.answer_as(to, header, fields, body, flags, sequence);
    }

    /// Answers a packet about an RPC that does not exist here, as [`Output::answer`] does, but
    /// repeats the session of the packet, if it has one. That proves to the sender that the answer
    /// is from the packet's destination, and reveals nothing else.
    pub(crate) fn echo(&mut self, to: Address, header: &Header, body: Body<'_>, flags: Flags) {
        let in_session = |fields: &&UdpFields| fields.flags.contains(Flags::SESSION);
        let session = header.udp().filter(in_session).map(|fields| fields.incarnation);
        let fields = self.answering_fields(header, session);
        self.answer_as(to, header, fields, body, flags, 0);
    }

    /// The fields of an answer in `session` to the sender of `header`.
    fn answering_fields(&self, header: &Header, session: Option<u64>) -> UdpFields {
        let identity = &self.outbound.identity;
        match header.sender_id.sender().peer() {
            Role::Client => identity.client_fields(session, UdpFields::LOW_WATER_UNKNOWN),
            Role::Server => identity.server_fields(session),
        }
    }

    /// Answers a packet with these fields of the udp profile.
    pub(super) fn answer_as(
        &mut self,
        to: Address,
        header: &Header,
        fields: UdpFields,
        body: Body<'_>,
        flags: Flags,
        sequence: u32,
    ) {
        let id = SenderId::new(header.sender_id.client_id(), header.sender_id.sender().peer());
        let identity = &self.outbound.identity;
        let dialect = identity.dialect(fields);
        let mut answer = Header::new(body.kind(), identity.port, header.sport, id, dialect);
        answer.sequence = if identity.profile == Profile::Udp { sequence } else { 0 };
        answer.add(flags, Features::NONE);
        self.enqueue(to, &Packet { header: answer, body });
    }

    /// Queues a control packet.
    pub(crate) fn enqueue(&mut self, to: Address, packet: &Packet<'_>) {
        self.observation.notes.departure(to, packet);
        let queued =
            self.outbound.control.push(ControlPacket::new(to, packet, self.outbound.answered));
        if !queued {
            self.observation.metrics.count_drop(DropReason::ControlQueueFull);
        }
    }

    /// Puts `rpc` into the queue of retransmissions if its message has any.
    pub(crate) fn queue_resend(&mut self, protocol: &Protocol, rpc: RpcKey) {
        let message = protocol.tables.rpcs[rpc].outgoing.as_ref();
        if let Some(message) = message.filter(|message| message.has_resend()) {
            self.outbound.resends.put(rpc, message.left());
        }
    }

    /// Sends all acks that wait for DATA to `peer` (RPC-18).
    pub(crate) fn send_waiting_acks(&mut self, protocol: &mut Protocol, peer: PeerId) {
        let Some(entry) = protocol.tables.peers.get_mut(peer) else { return };
        let (to, session) = (entry.address, entry.calls.latest_session());
        let identity = self.outbound.identity;
        let fields = identity.client_fields(session, UdpFields::LOW_WATER_UNKNOWN);
        let dialect = identity.dialect(fields);
        while let Some((first, list)) =
            protocol.tables.peers.get_mut(peer).and_then(|entry| entry.acks.take_packet())
        {
            let body = Body::Ack(list);
            let id = SenderId::new(first.client_id, Role::Client);
            let header = Header::new(body.kind(), identity.port, first.server_port, id, dialect);
            self.enqueue(to, &Packet { header, body });
        }
    }

    /// RPC-5: notifies the server that its client no longer needs a call, if the server may have
    /// state for it: a server that has offered no session has kept nothing. The kernel's clients
    /// send nothing (HM `homa_rpc.c` `homa_rpc_end`), and its servers then wait for grants forever
    /// (HM `homa_timer.c` `homa_timer_check_rpc`).
    pub(crate) fn disown(&mut self, protocol: &Protocol, rpc: RpcKey) {
        let entry = &protocol.tables.rpcs[rpc];
        let sent = entry.outgoing.as_ref().is_none_or(|message| message.sent() > 0);
        let keeps = self.outbound.identity.profile == Profile::Kernel || entry.session().is_some();
        if sent && keeps {
            self.control(protocol, rpc, Body::Ack(AckList::EMPTY));
        }
    }
}
