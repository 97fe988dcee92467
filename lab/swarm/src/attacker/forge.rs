//! Forged packets: any kind, with plausible fields.

use apus_sim::message::HostId;
use apus_wire::{
    Ack, AckList, Body, Cutoffs, Data, Dialect, Features, Flags, Grant, Header, Kind,
    MAX_HEADER_LEN, PRIORITIES, Packet, Refusal, Resend, Role, SenderId, UdpFields, Waiting,
};
use bytes::Bytes;

use super::contract::HostilePacket;
use crate::address::port;
use crate::generator::random::SeededRng;

/// Longest payload of a forged packet in bytes. The content does not matter, and short packets
/// allow more of them.
const PAYLOAD: u32 = 200;

/// Round lengths that applications commonly use.
const USUAL_LENGTHS: [u32; 3] = [100, 1_000, 100_000];

/// Numbers of bytes that lie: none, few, the unscheduled window, more than any message, and values
/// that overflow when something is added to them.
const LIES: [u32; 10] = [
    0,
    1,
    1_000,
    60_000,
    1_000_000,
    64_000_000,
    i32::MAX as u32,
    i32::MAX as u32 + 1,
    u32::MAX - 1,
    u32::MAX,
];

/// The session that a packet claims for its RPC.
#[derive(Clone, Copy, Debug)]
pub(super) enum SessionClaim {
    /// No session: a packet of an endpoint without one.
    Absent,
    /// A random number.
    Guessed,
    /// The session of a packet that an endpoint has sent. A request accepts it as an offer (AMO-1).
    Of(UdpFields),
    /// These fields, which a server has chosen itself.
    Exactly(UdpFields),
}

/// The RPC of a packet, as seen by its alleged sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    pub(super) from: HostId,
    pub(super) to: HostId,
    pub(super) sender: Role,
    pub(super) id: u64,
    pub(super) session: SessionClaim,
}

impl SessionClaim {
    /// Draws the claim of a packet without a known session.
    pub(super) fn unknown(rng: &mut SeededRng) -> Self {
        if rng.percent(50) { Self::Absent } else { Self::Guessed }
    }

    fn fields(self, rng: &mut SeededRng, is_request: bool) -> UdpFields {
        let mut fields = UdpFields { features: Features::OURS, ..UdpFields::default() };
        fields.low_water =
            if rng.percent(50) { UdpFields::LOW_WATER_UNKNOWN } else { rng.within(0..1 << 24) };
        match self {
            Self::Exactly(known) => return known,
            Self::Absent => fields.incarnation = rng.within(0..1 << 32),
            Self::Guessed => {
                fields.flags = Flags::SESSION;
                fields.incarnation = rng.within(1 << 32..1 << 48);
            }
            Self::Of(known) => {
                fields.flags = Flags::SESSION;
                fields.incarnation = known.incarnation;
                if is_request {
                    fields.flags = Flags::SESSION.with(Flags::CONFIRM);
                    fields.low_water = known.low_water;
                }
            }
        }
        fields
    }
}

/// Forges a packet of a kind.
pub(super) fn forge(rng: &mut SeededRng, about: About, kind: Kind) -> HostilePacket {
    match kind {
        Kind::Data => data(rng, about),
        Kind::Grant => {
            let grant = Grant { offset: rng.one_of(&LIES), priority: rng.within(0..8) };
            control(rng, about, Flags::NONE, 0, Body::Grant(grant))
        }
        Kind::Resend => {
            let (offset, length) = (rng.scale(0, 100_000) as u32, rng.scale(1, 100_000) as u32);
            let (offset, length) = if rng.percent(30) {
                (rng.one_of(&LIES), rng.one_of(&LIES))
            } else {
                (offset, length)
            };
            let resend = Resend { offset, length, priority: rng.within(0..8), brief: false };
            let resend = if rng.percent(30) { Resend::everything(7) } else { resend };
            control(rng, about, Flags::NONE, 0, Body::Resend(resend))
        }
        Kind::RpcUnknown => {
            let flags = rng.one_of(&[Flags::NONE, Flags::REFUSED, Flags::REFUSED, Flags::FINISHED]);
            let reason = rng.one_of(&Refusal::ALL) as u32;
            control(rng, about, flags, reason, Body::RpcUnknown)
        }
        Kind::Busy => {
            let flags = rng.one_of(&[Flags::NONE, Flags::CONFIRM]);
            control(rng, about, flags, 0, Body::Busy)
        }
        Kind::Cutoffs => {
            let lengths = [u32::MAX, u32::MAX, 5, 4, 3, 2, 1, 1];
            let lies = [(); PRIORITIES].map(|()| rng.one_of(&LIES));
            let unscheduled = if rng.percent(50) { lengths } else { lies };
            let cutoffs = Cutoffs { unscheduled, version: rng.within(0..=u16::MAX) };
            let room = rng.one_of(&LIES);
            control(rng, about, Flags::NONE, room, Body::Cutoffs(cutoffs))
        }
        Kind::Freeze => control(rng, about, Flags::NONE, 0, Body::Freeze),
        Kind::NeedAck => {
            let flags = rng.one_of(&[Flags::NONE, Flags::CONFIRM]);
            control(rng, about, flags, 0, Body::NeedAck)
        }
        Kind::Ack => {
            let mut list = AckList::EMPTY;
            for number in 0..rng.within(0..=5) {
                let ack = Ack {
                    client_id: about.id.wrapping_add(2 * number),
                    server_port: port(about.to),
                };
                list.push(ack).expect("at most five");
            }
            control(rng, about, Flags::NONE, 0, Body::Ack(list))
        }
    }
}

/// Forges the first packet of a message of `length` bytes. It holds the whole message if that fits
/// into one packet.
pub(super) fn first_data(rng: &mut SeededRng, about: About, length: u32) -> HostilePacket {
    let payload = vec![0x5a; length.min(PAYLOAD) as usize];
    let data = Data { message_length: length, incoming: length, ..piece(0) };
    packet(rng, about, Flags::NONE, 0, Body::Data(data, &payload), &payload)
}

/// Forges the first packet of a message of which `payload` bytes are sent, with an announcement
/// that is a lie or not.
pub(super) fn claim(rng: &mut SeededRng, about: About, length: u32, payload: u32) -> HostilePacket {
    let honest = [1, length - 1, length];
    let incoming = if rng.percent(70) { rng.one_of(&honest) } else { rng.one_of(&LIES) };
    let waiting = Waiting::from_byte(rng.within(0..=u8::MAX));
    let data = Data { message_length: length, incoming, waiting, ..piece(0) };
    let payload = vec![0x5a; payload.min(length) as usize];
    packet(rng, about, Flags::NONE, 0, Body::Data(data, &payload), &payload)
}

/// Forges a later packet of a message: `bytes` bytes at `offset`.
pub(super) fn continuation(
    rng: &mut SeededRng,
    about: About,
    length: u32,
    (offset, bytes): (u32, u32),
) -> HostilePacket {
    let waiting = Waiting::from_byte(rng.within(0..=u8::MAX));
    let incoming = rng.one_of(&LIES);
    let data = Data { message_length: length, incoming, waiting, ..piece(offset) };
    let payload = vec![0x5a; bytes.min(length - offset) as usize];
    packet(rng, about, Flags::NONE, offset, Body::Data(data, &payload), &payload)
}

fn data(rng: &mut SeededRng, about: About) -> HostilePacket {
    let drawn = rng.scale(1, 200_000) as u32;
    let length = if rng.percent(50) { rng.one_of(&USUAL_LENGTHS) } else { drawn };
    let offset = if rng.percent(60) { 0 } else { rng.within(0..length) };
    let payload = vec![0x5a; rng.within(1..=PAYLOAD).min(length - offset) as usize];
    let ack = Ack { client_id: about.id.wrapping_sub(2), server_port: port(about.to) };
    let incoming =
        if rng.percent(50) { rng.scale(0, length.into()) as u32 } else { rng.one_of(&LIES) };
    let data = Data {
        message_length: length,
        incoming,
        ack: rng.percent(30).then_some(ack),
        cutoff_version: rng.within(0..3),
        retransmit: rng.percent(30),
        // An arbitrary value.
        waiting: Waiting::from_byte((length ^ offset) as u8),
        response_limit: Waiting::from_byte(rng.within(0..=u8::MAX)),
        ..piece(offset)
    };
    packet(rng, about, Flags::NONE, offset, Body::Data(data, &payload), &payload)
}

const fn piece(offset: u32) -> Data {
    Data { offset, ..Data::first(0, 0) }
}

/// Forges a packet without payload.
pub(super) fn control(
    rng: &mut SeededRng,
    about: About,
    flags: Flags,
    sequence: u32,
    body: Body<'_>,
) -> HostilePacket {
    packet(rng, about, flags, sequence, body, &[])
}

fn packet(
    rng: &mut SeededRng,
    about: About,
    flags: Flags,
    sequence: u32,
    body: Body<'_>,
    payload: &[u8],
) -> HostilePacket {
    let is_request = about.sender == Role::Client && matches!(body, Body::Data(..));
    let mut fields = about.session.fields(rng, is_request);
    fields.flags = fields.flags.with(flags);
    let sender = SenderId::new(about.id, about.sender);
    let (sport, dport) = (port(about.from), port(about.to));
    let mut header = Header::new(body.kind(), sport, dport, sender, Dialect::Udp(fields));
    header.sequence = sequence;
    let mut buffer = [0; MAX_HEADER_LEN];
    let len = Packet { header, body }.emit_header(&mut buffer);
    let bytes = Bytes::from([&buffer[..len], payload].concat());
    HostilePacket { claimed: about.from, to: about.to, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_wire::Profile;

    #[test]
    fn every_kind_is_a_valid_packet() {
        let mut rng = SeededRng::new(1, 0);
        for round in 0..200 {
            for kind in Kind::ALL {
                let session = SessionClaim::unknown(&mut rng);
                let about = About { from: 1, to: 2, sender: Role::Client, id: 40 + round, session };
                let forged = forge(&mut rng, about, kind);
                let packet = Packet::parse(Profile::Udp, &forged.bytes).unwrap();
                assert_eq!(
                    (packet.body.kind(), packet.header.sender_id.sender()),
                    (kind, Role::Client)
                );
                assert_eq!((packet.header.sport, packet.header.dport), (port(1), port(2)));
            }
        }
    }
}
