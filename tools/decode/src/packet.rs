//! What is one packet?

use std::net::SocketAddr;

use apus_wire::{
    Ack, Body, Flags, HEADER_LEN, Header, Kind, Packet as WirePacket, ParseError, Profile, Refusal,
    SenderId,
};

use crate::rpc::Note;

/// A Homa packet of a capture, or an ICMP message about one.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// Number of the record that it was in, from 1 on, as Wireshark counts.
    pub number: u64,
    /// Which packet of a datagram that offload has merged, from 1 on, and of how many.
    pub part: (usize, usize),
    /// Nanoseconds since 1970.
    pub time: i64,
    /// Nanoseconds since the first record of the capture.
    pub since_start: i64,
    /// Address and Homa port of the sender. In the udp profile the port is the datagram's.
    pub from: SocketAddr,
    /// The same of the receiver.
    pub to: SocketAddr,
    /// IPv4's TOS or IPv6's traffic class.
    pub class: u8,
    /// Which dialect it is in.
    pub profile: Profile,
    /// Its bytes on the network, without IP and UDP headers.
    pub len: usize,
    /// What it says.
    pub content: Content,
    /// What is known about it from the packets before it; `None` if there is no RPC to know it about.
    pub note: Option<Note>,
}

/// What a packet says.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// All its fields.
    Whole {
        /// What all packets begin with.
        header: Header,
        /// What depends on the type. The bytes of the message are left out.
        body: Body<'static>,
        /// How many bytes of the message it carries; 0 in control packets.
        data_len: u32,
    },
    /// It is no packet.
    Malformed {
        /// Why not.
        error: ParseError,
        /// Type and id, if it has a header.
        header: Option<(u8, SenderId)>,
    },
    /// The capture holds less than its header.
    Cut {
        /// Type and id, if so much is there.
        header: Option<(u8, SenderId)>,
    },
    /// An ICMP message: it could not be delivered.
    Unreachable {
        /// What could not be reached, like `port`.
        what: &'static str,
        /// Which packet that is about.
        about: Quoted,
    },
}

/// How a server ends an RPC that it does not serve (any more).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is through with it, and will not execute it (again).
    Finished,
    /// It will not serve it.
    Refused(Refusal),
}

/// The packet that an ICMP message is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Quoted {
    /// Who sent it.
    pub from: SocketAddr,
    /// To whom.
    pub to: SocketAddr,
    /// Its type and id, if the message holds so much of it.
    pub header: Option<(u8, SenderId)>,
}

impl Content {
    /// Reads a packet of `len` bytes, of which these are there.
    pub(crate) fn parse(profile: Profile, bytes: &[u8], len: usize) -> Self {
        let header = raw_header(bytes);
        let parsed = WirePacket::parse(profile, bytes);
        if bytes.len() >= len {
            return Self::from_parsed(parsed, header);
        }
        // The rest is not there. What it says is none of our business if it is data.
        match parsed {
            Err(ParseError::TooShort { need, .. }) if need <= len => Self::Cut { header },
            Ok(WirePacket { body: Body::Data(..), .. })
            | Err(ParseError::EmptyData | ParseError::DataBeyondEnd { .. }) => {
                let mut whole = bytes.to_vec();
                whole.resize(len, 0);
                Self::from_parsed(WirePacket::parse(profile, &whole), header)
            }
            Err(ParseError::TooShort { kind, need, .. }) => {
                Self::Malformed { error: ParseError::TooShort { kind, need, have: len }, header }
            }
            parsed => Self::from_parsed(parsed, header),
        }
    }

    fn from_parsed(
        parsed: Result<WirePacket<'_>, ParseError>,
        header: Option<(u8, SenderId)>,
    ) -> Self {
        match parsed {
            Ok(WirePacket { header, body }) => {
                let (body, data_len) = without_data(body);
                Self::Whole { header, body, data_len }
            }
            Err(error) => Self::Malformed { error, header },
        }
    }
}

/// Type and id, where they stand in any packet of 28 bytes.
pub(crate) fn raw_header(bytes: &[u8]) -> Option<(u8, SenderId)> {
    let header = bytes.get(..HEADER_LEN)?;
    let id: [u8; 8] = header[20..28].try_into().expect("eight bytes");
    Some((header[11], SenderId::from_wire(u64::from_be_bytes(id))))
}

/// The two ports, in any packet of 28 bytes.
pub(crate) fn raw_ports(bytes: &[u8]) -> Option<(u16, u16)> {
    let header = bytes.get(..HEADER_LEN)?;
    let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    Some((port(0), port(2)))
}

fn without_data(body: Body<'_>) -> (Body<'static>, u32) {
    match body {
        Body::Data(data, bytes) => {
            (Body::Data(data, &[]), u32::try_from(bytes.len()).unwrap_or(u32::MAX))
        }
        Body::Grant(grant) => (Body::Grant(grant), 0),
        Body::Resend(resend) => (Body::Resend(resend), 0),
        Body::RpcUnknown => (Body::RpcUnknown, 0),
        Body::Busy => (Body::Busy, 0),
        Body::Cutoffs(cutoffs) => (Body::Cutoffs(cutoffs), 0),
        Body::Freeze => (Body::Freeze, 0),
        Body::NeedAck => (Body::NeedAck, 0),
        Body::Ack(list) => (Body::Ack(list), 0),
    }
}

impl Packet {
    /// The type; `None` if it is unknown or not there. Of an ICMP message, the type of the packet that it is
    /// about.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match &self.content {
            Content::Whole { body, .. } => Some(body.kind()),
            Content::Malformed { header, .. }
            | Content::Cut { header }
            | Content::Unreachable { about: Quoted { header, .. }, .. } => {
                header.and_then(|(kind, _)| Kind::from_wire(kind))
            }
        }
    }

    /// The RPC's id as its sender writes it, if it has one.
    #[must_use]
    pub fn sender_id(&self) -> Option<SenderId> {
        match &self.content {
            Content::Whole { header, .. } => Some(header.sender_id),
            Content::Malformed { header, .. }
            | Content::Cut { header }
            | Content::Unreachable { about: Quoted { header, .. }, .. } => header.map(|(_, id)| id),
        }
    }

    /// The acks in it: of DATA the one that it takes along, of ACK its entries.
    pub fn acks(&self) -> impl Iterator<Item = Ack> + '_ {
        let body = match &self.content {
            Content::Whole { body, .. } => Some(body),
            _ => None,
        };
        let carried = body.and_then(|body| match body {
            Body::Data(data, _) => data.ack,
            _ => None,
        });
        let listed = body.and_then(|body| match body {
            Body::Ack(list) => Some(list.iter()),
            _ => None,
        });
        carried.into_iter().chain(listed.into_iter().flatten())
    }

    /// From whom and to whom, as text: with ports, but for ICMP messages, which have none.
    #[must_use]
    pub fn ends(&self) -> (String, String) {
        match self.content {
            Content::Unreachable { .. } => (self.from.ip().to_string(), self.to.ip().to_string()),
            _ => (self.from.to_string(), self.to.to_string()),
        }
    }

    /// The level in the network that the traffic class stands for, 0 to 7 (`PRIO-10`).
    #[must_use]
    pub fn level(&self) -> u8 {
        self.class >> 5
    }

    /// Flags of the udp profile; none in the kernel profile.
    #[must_use]
    pub fn flags(&self) -> Flags {
        match &self.content {
            Content::Whole { header, .. } => header.udp().map_or(Flags::NONE, |udp| udp.flags),
            _ => Flags::NONE,
        }
    }

    /// What an RPC_UNKNOWN says for good (`WIRE-23`).
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        let Content::Whole { header, body: Body::RpcUnknown, .. } = &self.content else {
            return None;
        };
        if self.flags().contains(Flags::REFUSED) {
            return Some(Verdict::Refused(Refusal::from_wire(header.sequence)));
        }
        self.flags().contains(Flags::FINISHED).then_some(Verdict::Finished)
    }

    /// Whether something is wrong with it.
    #[must_use]
    pub fn is_malformed(&self) -> bool {
        matches!(self.content, Content::Malformed { .. })
    }
}
