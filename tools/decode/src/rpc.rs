//! What do packets mean for the RPCs that they belong to?

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use apus_wire::{Ack, Body, Data, Profile, Role};

use crate::message::{Half, Message};
use crate::packet::{Content, Packet};

/// An RPC as the capture shows it.
#[derive(Clone, Debug)]
pub struct Rpc {
    /// The even id by which both ends know it.
    pub id: u64,
    /// Which dialect its packets are in.
    pub profile: Profile,
    /// Address and Homa port.
    pub client: SocketAddr,
    /// Address and Homa port.
    pub server: SocketAddr,
    /// What the client says.
    pub request: Message,
    /// What the server says.
    pub response: Message,
    /// Packets of it, of all types.
    pub packets: u64,
    /// Number and time of the first packet that acknowledges it.
    pub acked: Option<(u64, i64)>,
    /// Number and time of the packet by which the server refused it, or said that it is through with it.
    pub refused: Option<(u64, i64)>,
    /// Number and time of the last RPC_UNKNOWN without such a reason.
    pub unknown: Option<(u64, i64)>,
    /// Number and time of the last ICMP message about it.
    pub unreachable: Option<(u64, i64)>,
}

/// Which RPC of a capture, in the order in which they appear in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RpcIndex(pub usize);

/// What the packets before it tell about a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Note {
    /// Its RPC.
    pub rpc: RpcIndex,
    /// Which message it is about.
    pub half: Half,
    /// The length of that message, if it is known.
    pub length: Option<u32>,
    /// DATA: bytes of the message seen so far.
    pub seen: u64,
    /// DATA: bytes that had been seen before.
    pub repeated: u64,
    /// DATA: bytes before it that have not been seen, behind those that have.
    pub gap: u64,
    /// DATA: how far behind everything that was allowed it begins.
    pub beyond: Option<u64>,
    /// DATA: another length that the message had before. Nothing else is known then.
    pub length_was: Option<u32>,
    /// DATA: whether all bytes of the message have been seen now, for the first time.
    pub completes: bool,
    /// The first DATA of a response: nanoseconds since the request began.
    pub response_time: Option<i64>,
    /// DATA that completes a response: nanoseconds since the request began.
    pub completion_time: Option<i64>,
    /// Retransmitted DATA: number of the last RESEND for the message, and nanoseconds since then.
    pub asked: Option<(u64, i64)>,
    /// GRANT: bytes that it adds to what was allowed.
    pub granted: u64,
}

/// Where the ends of an RPC are in the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// Where the request begins.
    pub request: Option<u64>,
    /// Where the response begins.
    pub response: Option<u64>,
    /// With which packet the message is complete that the packet is about.
    pub complete: Option<u64>,
    /// Where the RPC is acknowledged.
    pub acked: Option<u64>,
    /// Where the server refuses it, or says that it is through with it.
    pub refused: Option<u64>,
    /// Where an ICMP message says that it could not be delivered.
    pub unreachable: Option<u64>,
}

impl Rpc {
    /// What a packet about one of its messages can be linked to, itself left out.
    #[must_use]
    pub fn links(&self, half: Half, itself: u64) -> Links {
        let other = |found: Option<(u64, i64)>| {
            found.map(|(number, _)| number).filter(|&number| number != itself)
        };
        Links {
            request: other(self.request.first),
            response: other(self.response.first),
            complete: other(self.message(half).complete),
            acked: other(self.acked),
            refused: other(self.refused),
            unreachable: other(self.unreachable),
        }
    }

    /// Its request or its response.
    #[must_use]
    pub fn message(&self, half: Half) -> &Message {
        match half {
            Half::Request => &self.request,
            Half::Response => &self.response,
        }
    }

    fn message_mut(&mut self, half: Half) -> &mut Message {
        match half {
            Half::Request => &mut self.request,
            Half::Response => &mut self.response,
        }
    }

    /// Nanoseconds from the request's first packet to the response's first one.
    #[must_use]
    pub fn response_time(&self) -> Option<i64> {
        Some(self.response.first?.1.saturating_sub(self.request.first?.1))
    }

    /// Nanoseconds from the request's first packet to the response's end.
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
            request: Message::default(),
            response: Message::default(),
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
pub(crate) struct Rpcs {
    all: Vec<Rpc>,
    by_key: HashMap<Key, RpcIndex>,
}

/// What tells RPCs apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    profile: Profile,
    client: IpAddr,
    /// 0 in the kernel profile: ids are unique per host there, and acks do not name the port (row L-2).
    client_port: u16,
    server: SocketAddr,
    id: u64,
}

impl Rpcs {
    pub(crate) fn all(&self) -> &[Rpc] {
        &self.all
    }

    pub(crate) fn into_all(self) -> Vec<Rpc> {
        self.all
    }

    /// Takes the next packet of the capture into account, and says what is known about it.
    pub(crate) fn observe(&mut self, packet: &Packet) -> Option<Note> {
        match &packet.content {
            Content::Whole { header, body, data_len } => {
                let role = header.sender_id.sender();
                let index = self.of(packet, role, header.sender_id.client_id());
                let note = self.whole(packet, index, role, body, *data_len);
                for ack in packet.acks() {
                    self.acked(packet, ack);
                }
                Some(note)
            }
            Content::Unreachable { about, .. } => {
                let id = about.header?.1;
                let (from, to) = (about.from, about.to);
                let index = self.between(packet.profile, from, to, id.sender(), id.client_id());
                let rpc = &mut self.all[index.0];
                rpc.unreachable = Some((packet.number, packet.time));
                rpc.packets += 1;
                let half = half(id.sender(), packet.kind() == Some(apus_wire::Kind::Data));
                Some(note(index, half, rpc))
            }
            Content::Malformed { .. } | Content::Cut { .. } => None,
        }
    }

    fn whole(
        &mut self,
        packet: &Packet,
        index: RpcIndex,
        role: Role,
        body: &Body<'_>,
        data_len: u32,
    ) -> Note {
        let place = (packet.number, packet.time);
        let rpc = &mut self.all[index.0];
        rpc.packets += 1;
        let half = half(role, matches!(body, Body::Data(..)));
        match body {
            Body::Data(data, _) => return data_arrives(rpc, index, half, data, data_len, place),
            Body::Grant(grant) => {
                let message = rpc.message_mut(half);
                message.grants += 1;
                let granted = message.allow(grant.offset.into());
                return Note { granted, ..note(index, half, rpc) };
            }
            Body::Resend(resend) => {
                let message = rpc.message_mut(half);
                message.resends += 1;
                message.asked = Some(place);
                if !resend.is_everything() {
                    message.allow(u64::from(resend.offset) + u64::from(resend.length));
                }
            }
            Body::RpcUnknown => match packet.verdict() {
                Some(_) => rpc.refused = Some(place),
                None => rpc.unknown = Some(place),
            },
            Body::Ack(_) => rpc.acked = rpc.acked.or(Some(place)),
            Body::Busy | Body::Cutoffs(_) | Body::Freeze | Body::NeedAck => {}
        }
        note(index, half, rpc)
    }

    /// The client has the response of that RPC.
    fn acked(&mut self, packet: &Packet, ack: Ack) {
        let server = SocketAddr::new(packet.to.ip(), ack.server_port);
        let id = ack.client_id & !1;
        let index = self.between(packet.profile, packet.from, server, Role::Client, id);
        let rpc = &mut self.all[index.0];
        rpc.acked = rpc.acked.or(Some((packet.number, packet.time)));
    }

    fn of(&mut self, packet: &Packet, sender: Role, id: u64) -> RpcIndex {
        self.between(packet.profile, packet.from, packet.to, sender, id)
    }

    /// The RPC of that id between these ends.
    fn between(
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
            self.all.push(Rpc::new(id, profile, client, server));
            RpcIndex(self.all.len() - 1)
        })
    }
}

/// Which message a packet of that end is about: DATA about what it sends, all else about what it receives.
const fn half(sender: Role, is_data: bool) -> Half {
    match (sender, is_data) {
        (Role::Client, true) | (Role::Server, false) => Half::Request,
        (Role::Server, true) | (Role::Client, false) => Half::Response,
    }
}

/// Nothing but the RPC and the message.
fn note(rpc: RpcIndex, half: Half, about: &Rpc) -> Note {
    Note {
        rpc,
        half,
        length: about.message(half).length,
        seen: about.message(half).seen(),
        repeated: 0,
        gap: 0,
        beyond: None,
        length_was: None,
        completes: false,
        response_time: None,
        completion_time: None,
        asked: None,
        granted: 0,
    }
}

fn data_arrives(
    rpc: &mut Rpc,
    index: RpcIndex,
    half: Half,
    data: &Data,
    data_len: u32,
    place: (u64, i64),
) -> Note {
    let begun = rpc.request.first;
    let message = rpc.message_mut(half);
    message.packets += 1;
    message.retransmitted += u64::from(data.retransmit);
    let length_was = message.length.filter(|&length| length != data.message_length);
    if length_was.is_some() {
        return Note { length_was, ..note(index, half, rpc) };
    }
    message.length = Some(data.message_length);
    let is_first = message.first.is_none();
    message.first = message.first.or(Some(place));
    message.allow(data.incoming.into());
    let start = u64::from(data.offset);
    let stretch = message.add(start..start + u64::from(data_len), place.0, place.1);
    let asked = message.asked.filter(|_| data.retransmit);
    let asked = asked.map(|(number, time)| (number, place.1.saturating_sub(time)));
    let since = begun.map(|(_, time)| place.1.saturating_sub(time));
    let of_response = |condition: bool| since.filter(|_| condition && half == Half::Response);
    Note {
        repeated: stretch.repeated,
        gap: stretch.gap,
        beyond: stretch.beyond,
        completes: stretch.completes,
        response_time: of_response(is_first),
        completion_time: of_response(stretch.completes),
        asked,
        ..note(index, half, rpc)
    }
}
