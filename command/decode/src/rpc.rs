//! RPC table of a capture: links each packet to its RPC and to earlier packets of that RPC.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use apus_wire::{Ack, Body, Data, Profile, Role};

use crate::message::{CapturedMessage, MessageKind};
use crate::note::{Links, Note, RpcIndex};
use crate::packet::{CapturedPacket, Content};

/// An RPC, as far as the capture contains it.
#[derive(Clone, Debug)]
pub struct CapturedRpc {
    /// Even id, shared by client and server.
    pub id: u64,
    /// Wire profile of its packets.
    pub profile: Profile,
    /// Address and Homa port of the client.
    pub client: SocketAddr,
    /// Address and Homa port of the server.
    pub server: SocketAddr,
    /// The request.
    pub request: CapturedMessage,
    /// The response.
    pub response: CapturedMessage,
    /// Number of packets of all types.
    pub packets: u64,
    /// Number and time of the first packet that acknowledges the RPC.
    pub acked: Option<(u64, i64)>,
    /// Number and time of the server packet that refused the RPC or declared it finished.
    pub refused: Option<(u64, i64)>,
    /// Number and time of the last RPC_UNKNOWN without a final answer.
    pub unknown: Option<(u64, i64)>,
    /// Number and time of the last ICMP error about the RPC.
    pub unreachable: Option<(u64, i64)>,
}

impl CapturedRpc {
    /// Returns the links of packet number `itself`, which refers to the message `message_kind`. A
    /// packet is not linked to itself.
    #[must_use]
    pub fn links(&self, message_kind: MessageKind, itself: u64) -> Links {
        let other = |found: Option<(u64, i64)>| {
            found.map(|(number, _)| number).filter(|&number| number != itself)
        };
        Links {
            request: other(self.request.first),
            response: other(self.response.first),
            complete: other(self.message(message_kind).complete),
            acked: other(self.acked),
            refused: other(self.refused),
            unreachable: other(self.unreachable),
        }
    }

    /// Returns the request or the response.
    #[must_use]
    pub fn message(&self, message_kind: MessageKind) -> &CapturedMessage {
        match message_kind {
            MessageKind::Request => &self.request,
            MessageKind::Response => &self.response,
        }
    }

    fn message_mut(&mut self, message_kind: MessageKind) -> &mut CapturedMessage {
        match message_kind {
            MessageKind::Request => &mut self.request,
            MessageKind::Response => &mut self.response,
        }
    }

    /// Returns the nanoseconds from the first packet of the request to the first packet of the
    /// response.
    #[must_use]
    pub fn response_time(&self) -> Option<i64> {
        Some(self.response.first?.1.saturating_sub(self.request.first?.1))
    }

    /// Returns the nanoseconds from the first packet of the request to the packet that completes
    /// the response.
    #[must_use]
    pub fn completion_time(&self) -> Option<i64> {
        Some(self.response.complete?.1.saturating_sub(self.request.first?.1))
    }

    fn new(id: u64, profile: Profile, client: SocketAddr, server: SocketAddr) -> Self {
        Self {
            id,
            profile,
            client,
            server,
            request: CapturedMessage::default(),
            response: CapturedMessage::default(),
            packets: 0,
            acked: None,
            refused: None,
            unknown: None,
            unreachable: None,
        }
    }
}

/// All RPCs of a capture so far.
#[derive(Debug, Default)]
pub(crate) struct RpcTable {
    all: Vec<CapturedRpc>,
    by_key: HashMap<Key, RpcIndex>,
}

/// Identity of an RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    profile: Profile,
    client: IpAddr,
    /// 0 in the kernel profile: ids are unique per host there, and acks do not contain the port
    /// (HM `homa_rpc.c` `homa_rpc_alloc_client`).
    client_port: u16,
    server: SocketAddr,
    id: u64,
}

impl RpcTable {
    pub(crate) fn all(&self) -> &[CapturedRpc] {
        &self.all
    }

    pub(crate) fn into_all(self) -> Vec<CapturedRpc> {
        self.all
    }

    /// Records the next packet of the capture and returns its note.
    pub(crate) fn observe(&mut self, packet: &CapturedPacket) -> Option<Note> {
        match &packet.content {
            Content::Whole { header, body, data_len } => {
                let role = header.sender_id.sender();
                let index = self.rpc_of(packet, role, header.sender_id.client_id());
                let note = self.observe_whole(packet, index, role, body, *data_len);
                for ack in packet.acks() {
                    self.observe_ack(packet, ack);
                }
                Some(note)
            }
            Content::Unreachable { about, .. } => {
                let id = about.header?.1;
                let (from, to) = (about.from, about.to);
                let index = self.rpc_between(packet.profile, from, to, id.sender(), id.client_id());
                let rpc = &mut self.all[index.0];
                rpc.unreachable = Some((packet.number, packet.time));
                rpc.packets += 1;
                let message_kind =
                    message_kind_of(id.sender(), packet.kind() == Some(apus_wire::Kind::Data));
                Some(empty_note(index, message_kind, rpc))
            }
            Content::Sealed { .. } | Content::Malformed { .. } | Content::Truncated { .. } => None,
        }
    }

    fn observe_whole(
        &mut self,
        packet: &CapturedPacket,
        index: RpcIndex,
        role: Role,
        body: &Body<'_>,
        data_len: u32,
    ) -> Note {
        let place = (packet.number, packet.time);
        let rpc = &mut self.all[index.0];
        rpc.packets += 1;
        let message_kind = message_kind_of(role, matches!(body, Body::Data(..)));
        match body {
            Body::Data(data, _) => {
                return observe_data(rpc, index, message_kind, data, data_len, place);
            }
            Body::Grant(grant) => {
                let message = rpc.message_mut(message_kind);
                message.grants += 1;
                let granted = message.raise_limit(grant.offset.into());
                return Note { granted, ..empty_note(index, message_kind, rpc) };
            }
            Body::Resend(resend) => {
                let message = rpc.message_mut(message_kind);
                message.resends += 1;
                message.last_resend = Some(place);
                if !resend.is_everything() {
                    message.raise_limit(u64::from(resend.offset) + u64::from(resend.length));
                }
            }
            Body::RpcUnknown => match packet.verdict() {
                Some(_) => rpc.refused = Some(place),
                None => rpc.unknown = Some(place),
            },
            Body::Ack(_) => rpc.acked = rpc.acked.or(Some(place)),
            Body::Busy | Body::Cutoffs(_) | Body::Freeze | Body::NeedAck => {}
        }
        empty_note(index, message_kind, rpc)
    }

    /// Records that the client has acknowledged an RPC.
    fn observe_ack(&mut self, packet: &CapturedPacket, ack: Ack) {
        let server = SocketAddr::new(packet.to.ip(), ack.server_port);
        let id = ack.client_id & !1;
        let index = self.rpc_between(packet.profile, packet.from, server, Role::Client, id);
        let rpc = &mut self.all[index.0];
        rpc.acked = rpc.acked.or(Some((packet.number, packet.time)));
    }

    fn rpc_of(&mut self, packet: &CapturedPacket, sender: Role, id: u64) -> RpcIndex {
        self.rpc_between(packet.profile, packet.from, packet.to, sender, id)
    }

    /// Returns the RPC with id `id` between these addresses, creating it if necessary.
    fn rpc_between(
        &mut self,
        profile: Profile,
        from: SocketAddr,
        to: SocketAddr,
        sender: Role,
        id: u64,
    ) -> RpcIndex {
        let (client, server) = match sender {
            Role::Client => (from, to),
            Role::Server => (to, from),
        };
        let client_port = if profile == Profile::Kernel { 0 } else { client.port() };
        let key = Key { profile, client: client.ip(), client_port, server, id };
        *self.by_key.entry(key).or_insert_with(|| {
            self.all.push(CapturedRpc::new(id, profile, client, server));
            RpcIndex(self.all.len() - 1)
        })
    }
}

/// Returns the message that a packet refers to: DATA belongs to the message transmitted by its
/// sender, every other type to the message received by its sender.
const fn message_kind_of(sender: Role, is_data: bool) -> MessageKind {
    match (sender, is_data) {
        (Role::Client, true) | (Role::Server, false) => MessageKind::Request,
        (Role::Server, true) | (Role::Client, false) => MessageKind::Response,
    }
}

/// Returns a note that contains only the RPC and the message.
fn empty_note(rpc: RpcIndex, message_kind: MessageKind, about: &CapturedRpc) -> Note {
    Note {
        rpc,
        message_kind,
        length: about.message(message_kind).length,
        seen: about.message(message_kind).seen(),
        repeated: 0,
        gap: 0,
        beyond: None,
        length_was: None,
        completes: false,
        response_time: None,
        completion_time: None,
        resend: None,
        granted: 0,
    }
}

fn observe_data(
    rpc: &mut CapturedRpc,
    index: RpcIndex,
    message_kind: MessageKind,
    data: &Data,
    data_len: u32,
    place: (u64, i64),
) -> Note {
    let request_start = rpc.request.first;
    let message = rpc.message_mut(message_kind);
    message.packets += 1;
    message.retransmitted += u64::from(data.retransmit);
    let length_was = message.length.filter(|&length| length != data.message_length);
    if length_was.is_some() {
        return Note { length_was, ..empty_note(index, message_kind, rpc) };
    }
    message.length = Some(data.message_length);
    let is_first = message.first.is_none();
    message.first = message.first.or(Some(place));
    message.raise_limit(data.incoming.into());
    let start = u64::from(data.offset);
    let effect = message.add(start..start + u64::from(data_len), place.0, place.1);
    let resend = message.last_resend.filter(|_| data.retransmit);
    let resend = resend.map(|(number, time)| (number, place.1.saturating_sub(time)));
    let since = request_start.map(|(_, time)| place.1.saturating_sub(time));
    let of_response =
        |condition: bool| since.filter(|_| condition && message_kind == MessageKind::Response);
    Note {
        repeated: effect.repeated,
        gap: effect.gap,
        beyond: effect.beyond,
        completes: effect.completes,
        response_time: of_response(is_first),
        completion_time: of_response(effect.completes),
        resend,
        ..empty_note(index, message_kind, rpc)
    }
}
