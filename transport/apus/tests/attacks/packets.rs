//! The packets of attackers.

use apus_wire::{
    AckList, Body, Cutoffs, Data, Dialect, Features, Flags, Grant, Header, HeaderBuffer,
    MAX_HEADER_LEN, PRIORITIES, Packet, Refusal, Resend, Role, SenderId, UdpFields,
};
use std::net::SocketAddrV4;

/// A version of cutoffs that no endpoint announces: it shows whose cutoffs are used.
pub(crate) const FORGED_CUTOFFS: u16 = 0xbeef;

/// Fields that all packets about one RPC share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    pub(crate) from: SocketAddrV4,
    pub(crate) to: SocketAddrV4,
    pub(crate) sender: Role,
    pub(crate) id: u64,
    pub(crate) fields: UdpFields,
}

/// Fields of a packet without a session: only an incarnation.
pub(crate) fn first_contact(incarnation: u64) -> UdpFields {
    let incarnation = incarnation & 0xffff_ffff;
    let low_water = UdpFields::LOW_WATER_UNKNOWN;
    UdpFields { flags: Flags::NONE, incarnation, low_water, features: Features::OURS }
}

/// Fields of a packet in a session.
pub(crate) fn in_session(session: u64) -> UdpFields {
    UdpFields { flags: Flags::SESSION, incarnation: session, ..first_contact(0) }
}

/// Fields of a packet that answers the offer of `session` to the peer with this claim.
pub(crate) fn accepting(session: u64, claim: u32) -> UdpFields {
    let flags = Flags::SESSION.with(Flags::CONFIRM);
    UdpFields { flags, low_water: claim, ..in_session(session) }
}

/// All sessions that differ from `session` in one of 48 bits, its half that an earlier version
/// would have used, and none.
pub(crate) fn all_but(session: u64) -> Vec<UdpFields> {
    let near = (0..48).map(|bit| in_session(session ^ 1 << bit));
    let older = Features::OURS.without(Features::LONG_SESSIONS);
    let half = UdpFields { features: older, ..in_session(session & 0xffff_ffff) };
    near.chain([half, in_session(0), first_contact(0), first_contact(session)]).collect()
}

impl Envelope {
    /// Writes a packet.
    pub(crate) fn write(&self, control: &Control) -> Vec<u8> {
        let fields = UdpFields { flags: self.fields.flags.with(control.flags), ..self.fields };
        self.emit(fields, control.sequence, control.body)
    }

    /// Writes DATA: the whole message.
    pub(crate) fn data(&self, message: &[u8]) -> Vec<u8> {
        self.first_of(message.len(), message)
    }

    /// Writes DATA: the start of a message of `length` bytes.
    pub(crate) fn first_of(&self, length: usize, beginning: &[u8]) -> Vec<u8> {
        let message_length = u32::try_from(length).unwrap();
        let data = Data::first(message_length, message_length.min(60_000));
        let mut packet = self.emit(self.fields, 0, Body::Data(data, beginning));
        packet.extend(beginning);
        packet
    }

    fn emit(&self, fields: UdpFields, sequence: u32, body: Body<'_>) -> Vec<u8> {
        let id = SenderId::new(self.id, self.sender);
        let (sport, dport) = (self.from.port(), self.to.port());
        let header = Header::new(body.kind(), sport, dport, id, Dialect::Udp(fields));
        let mut buffer: HeaderBuffer = [0; MAX_HEADER_LEN];
        let length =
            Packet { header: Header { sequence, ..header }, body }.emit_header(&mut buffer);
        buffer[..length].to_vec()
    }
}

/// A control packet, without the fields of [`Envelope`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Control {
    flags: Flags,
    sequence: u32,
    body: Body<'static>,
}

impl Control {
    /// The server refuses to serve the call.
    pub(crate) const REFUSAL: Self = Self {
        flags: Flags::REFUSED,
        sequence: Refusal::Overloaded as u32,
        body: Body::RpcUnknown,
    };

    /// A server offers a session.
    pub(crate) const OFFER: Self = Self { flags: Flags::CONFIRM, sequence: 0, body: Body::NeedAck };

    /// The sender will continue.
    pub(crate) const BUSY: Self = Self::plain(Body::Busy);

    const fn plain(body: Body<'static>) -> Self {
        Self { flags: Flags::NONE, sequence: 0, body }
    }

    /// All that may be sent to either end of a call.
    pub(crate) fn all() -> Vec<Self> {
        let cutoffs = Cutoffs { unscheduled: [u32::MAX; PRIORITIES], version: FORGED_CUTOFFS };
        let grant = Grant { offset: u32::MAX / 2, priority: 0 };
        let plain = [
            Body::Grant(grant),
            Body::Resend(Resend::everything(7)),
            Body::RpcUnknown,
            Body::Busy,
            Body::Cutoffs(cutoffs),
            Body::Freeze,
            Body::NeedAck,
            Body::Ack(AckList::EMPTY),
        ];
        let finished = Self { flags: Flags::FINISHED, ..Self::plain(Body::RpcUnknown) };
        plain.map(Self::plain).into_iter().chain([Self::REFUSAL, Self::OFFER, finished]).collect()
    }
}
