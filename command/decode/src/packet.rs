//! Captured packets: the fields of a Homa packet, or its violation of the wire format.

use std::net::SocketAddr;

use apus_wire::{
    Ack, Body, Features, Flags, HEADER_LEN, Header, Kind, Packet as WirePacket, ParseError,
    Profile, Refusal, SealedHeader, SenderId,
};

use crate::note::Note;

/// A Homa packet of a capture, or an ICMP error about one.
#[derive(Clone, Debug, PartialEq)]
pub struct CapturedPacket {
    /// Number of the capture record, starting at 1, as Wireshark counts.
    pub number: u64,
    /// Position of the packet in its datagram, starting at 1, and number of packets in the
    /// datagram. Offload merges packets.
    pub part: (usize, usize),
    /// Capture time in nanoseconds since 1970.
    pub time: i64,
    /// Nanoseconds since the first record of the capture.
    pub since_start: i64,
    /// Address and Homa port of the sender. In the udp profile it is the port of the datagram.
    pub from: SocketAddr,
    /// Address and Homa port of the receiver. In the udp profile it is the port of the datagram.
    pub to: SocketAddr,
    /// IPv4's TOS or IPv6's traffic class.
    pub class: u8,
    /// Wire profile of the packet.
    pub profile: Profile,
    /// Length on the network in bytes, without IP and UDP headers.
    pub len: usize,
    /// Packet number used for sealing, if the packet was opened with a key log. Packets of one
    /// datagram share it.
    pub sealed_as: Option<u64>,
    /// Decoded content.
    pub content: Content,
    /// Facts derived from earlier packets; `None` if this packet belongs to no RPC.
    pub note: Option<Note>,
}

/// Decoded content of a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A valid packet.
    Whole {
        /// Common header.
        header: Header,
        /// Fields of the packet type. The payload is left out.
        body: Body<'static>,
        /// Payload length in bytes; 0 in control packets.
        data_len: u32,
    },
    /// A packet of version 2 (SEAL-1); only its header is readable.
    Sealed {
        /// Readable part of the header.
        sealed: SealedHeader,
        /// Wire value of the type, and RPC id or handshake id.
        header: (u8, SenderId),
    },
    /// A packet that violates the wire format.
    Malformed {
        /// The violation.
        error: ParseError,
        /// Wire value of the type, and RPC id, if a whole header was captured.
        header: Option<(u8, SenderId)>,
    },
    /// A packet whose capture ends within its header.
    Truncated {
        /// Wire value of the type, and RPC id, if a whole common header was captured.
        header: Option<(u8, SenderId)>,
    },
    /// An ICMP error: a Homa packet could not be delivered.
    Unreachable {
        /// Name of the unreachable thing, for instance `port`.
        what: &'static str,
        /// The packet that was not delivered.
        about: QuotedPacket,
    },
}

/// Final answer of a server about an RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The RPC is finished; the server will not execute it (again).
    Finished,
    /// The server refuses the request for this reason.
    Refused(Refusal),
}

/// The packet that an ICMP error quotes.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotedPacket {
    /// Address of its sender.
    pub from: SocketAddr,
    /// Address of its receiver.
    pub to: SocketAddr,
    /// Wire value of its type, and RPC id, if the quotation is long enough.
    pub header: Option<(u8, SenderId)>,
}

impl Content {
    /// Parses a packet of `len` bytes; `bytes` are the captured part.
    pub(crate) fn parse(profile: Profile, bytes: &[u8], len: usize) -> Self {
        let header = raw_header(bytes);
        if let (Profile::Udp, Some(sealed), Some(header)) =
            (profile, SealedHeader::parse(bytes), header)
        {
            return Self::Sealed { sealed, header };
        }
        let parsed = WirePacket::parse(profile, bytes);
        if bytes.len() >= len {
            return Self::from_parsed(parsed, header);
        }
        // The rest was not captured. For DATA it is payload, which is not decoded and can be
        // replaced by zeros.
        match parsed {
            Err(ParseError::TooShort { need, .. }) if need <= len => Self::Truncated { header },
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

/// Returns the wire value of the type, and the RPC id, which are at the same offsets in every
/// packet.
pub(crate) fn raw_header(bytes: &[u8]) -> Option<(u8, SenderId)> {
    let header = bytes.get(..HEADER_LEN)?;
    let id: [u8; 8] = header[20..28].try_into().expect("eight bytes");
    Some((header[11], SenderId::from_wire(u64::from_be_bytes(id))))
}

/// Returns source and destination port of a packet with a whole header.
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

impl CapturedPacket {
    /// Returns the Homa type; `None` if it is unknown or was not captured. For an ICMP error,
    /// returns the type of the quoted packet.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match &self.content {
            Content::Whole { body, .. } => Some(body.kind()),
            Content::Sealed { header: (kind, _), .. } => Kind::from_wire(*kind),
            Content::Malformed { header, .. }
            | Content::Truncated { header }
            | Content::Unreachable { about: QuotedPacket { header, .. }, .. } => {
                header.and_then(|(kind, _)| Kind::from_wire(kind))
            }
        }
    }

    /// Returns the RPC's id as written by the sender, if captured.
    #[must_use]
    pub fn sender_id(&self) -> Option<SenderId> {
        match &self.content {
            Content::Whole { header, .. } => Some(header.sender_id),
            Content::Sealed { sealed, header } => sealed.kind.is_none().then_some(header.1),
            Content::Malformed { header, .. }
            | Content::Truncated { header }
            | Content::Unreachable { about: QuotedPacket { header, .. }, .. } => {
                header.map(|(_, id)| id)
            }
        }
    }

    /// Returns the acknowledgements in the packet: the single acknowledgement of a DATA packet, or
    /// the entries of an ACK packet.
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

    /// Returns sender and receiver as text, with ports except for ICMP errors, which lack them.
    #[must_use]
    pub fn addresses(&self) -> (String, String) {
        match self.content {
            Content::Unreachable { .. } => (self.from.ip().to_string(), self.to.ip().to_string()),
            _ => (self.from.to_string(), self.to.to_string()),
        }
    }

    /// Returns the network priority level that the traffic class encodes, 0 to 7 (`PRIO-10`).
    #[must_use]
    pub fn level(&self) -> u8 {
        self.class >> 5
    }

    /// Returns the flags of the udp profile; none in the kernel profile.
    #[must_use]
    pub fn flags(&self) -> Flags {
        match &self.content {
            Content::Whole { header, .. } => header.udp().map_or(Flags::NONE, |udp| udp.flags),
            _ => Flags::NONE,
        }
    }

    /// Returns whether the packet is marked as sent from a port other than its sender's
    /// (`WIRE-36`).
    #[must_use]
    pub fn is_sprayed(&self) -> bool {
        // The bit is a mark only where the header has room for it: together with a 48-bit session.
        let mark = Features::SPRAYED.with(Features::LONG_SESSIONS);
        match &self.content {
            Content::Whole { header, body: Body::Data(..), .. } => {
                header.states(mark) && self.flags().contains(Flags::SESSION)
            }
            _ => false,
        }
    }

    /// Returns the final answer that an RPC_UNKNOWN packet contains (`WIRE-23`).
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

    /// Returns the room for unscheduled bytes that a CUTOFFS packet of the udp profile states
    /// (`WIRE-28`).
    #[must_use]
    pub fn stated_room(&self) -> Option<u32> {
        let Content::Whole { header, body: Body::Cutoffs(_), .. } = &self.content else {
            return None;
        };
        header.udp().map(|_| header.sequence).filter(|room| *room > 0)
    }

    /// Returns whether the packet violates the wire format.
    #[must_use]
    pub fn is_malformed(&self) -> bool {
        matches!(self.content, Content::Malformed { .. })
    }
}
