//! The common header of all packets.

use crate::bytes::{array, read_u16, read_u32, read_u64, write_u16, write_u32, write_u64};
use crate::error::ParseError;
use crate::features::Features;
use crate::kind::Kind;
use crate::lengths::{HEADER_LEN, HeaderBuffer};
use crate::older;
use crate::profile::{Flags, Profile, UDP_VERSION};
use crate::sealed::is_sealed;
use crate::sender_id::SenderId;

/// Offset of the kind.
const KIND: usize = 11;
/// Offset of the sender id.
const SENDER_ID: usize = 20;

/// Header words in DATA packets, as the kernel writes them (high nibble of byte 12).
const DOFF_DATA: u8 = 14 << 4;
/// The bits of byte 12 that hold the features in packets of a session of 48 bits.
const FEATURES_NIBBLE: u8 = 0x0f;
/// Header words in control packets.
const DOFF_CONTROL: u8 = 5 << 4;

/// The common header, 28 bytes, big endian.
///
/// ```text
///  0       2       4               8           11  12  13  14              18      20
/// +-------+-------+---------------+-----------+---+---+---+---------------+-------+--------- +
/// | sport | dport | sequence      | a         |typ|dof| b | c             | d     | sender id |
/// +-------+-------+---------------+-----------+---+---+---+---------------+-------+--------- +
///   kernel profile:  a = 0, b = flags (6), c = window and checksum, d = urgent (0xb97d)
///   udp profile:     a = low-water distance or claim, b = version and flags, c = incarnation, d = features;
///                    in a session, c and d = session, features in the low nibble of dof
/// ```
///
/// Source: docs/reference/homa-module.md, *Wire format* and *Rules for peers*; requirements
/// `WIRE-1`, `WIRE-2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Homa port of the sender.
    pub sport: u16,
    /// Homa port of the receiver.
    pub dport: u16,
    /// In DATA: offset of the first data byte. In RPC_UNKNOWN with [`Flags::REFUSED`]: a
    /// [`crate::Refusal`]. In CUTOFFS of the udp profile: the sender's room for unscheduled bytes,
    /// 0 if it is not stated (`WIRE-28`). Otherwise 0.
    pub sequence: u32,
    /// High nibble: header words. Written, and ignored on receipt. In the udp profile the low
    /// nibble is 0 here: it holds [`UdpFields::features`].
    pub doff: u8,
    /// The content of the remaining bytes, which differs between the profiles.
    pub dialect: Dialect,
    /// RPC id from the sender's viewpoint.
    pub sender_id: SenderId,
}

/// The profile's own part of the [`Header`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Bytes of the kernel profile that the protocol does not use.
    Kernel(KernelFields),
    /// The udp profile's additions.
    Udp(UdpFields),
}

/// Fields of the kernel profile that exist to resemble TCP. Ignored on receipt, kept so that a
/// packet can be written again byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelFields {
    /// Bytes 8 to 10 (upper part of TCP's acknowledgment number).
    pub ack: [u8; 3],
    /// Byte 13; the kernel sends 6 (SYN and RST).
    pub flags: u8,
    /// Bytes 14 and 15.
    pub window: u16,
    /// Bytes 16 and 17; the kernel sends an unfinished pseudo-header sum, zero works.
    pub checksum: u16,
    /// Bytes 18 and 19; the kernel sends 0xb97d.
    pub urgent: u16,
}

impl KernelFields {
    /// The fields of packets that this implementation sends: the kernel's constants and no
    /// checksum.
    ///
    /// Source: Rules for peers, item 20, and Observed on the live module, item 3 (zeros work,
    /// constants are safe).
    pub const OURS: Self = Self { ack: [0; 3], flags: 6, window: 0, checksum: 0, urgent: 0xb97d };
}

/// Additional fields of the udp profile, for at-most-once execution and for noticing restarts.
///
/// Requirements `WIRE-20`, `WIRE-21`, `WIRE-22`, `WIRE-31`, `WIRE-33`, `AMO-*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct UdpFields {
    /// Flags; they decide what `incarnation` means.
    pub flags: Flags,
    /// Client without a session yet: the client's incarnation, drawn at random when the endpoint
    /// was made, 32 bits. With [`Flags::SESSION`]: the session that the server chose for this
    /// client, 48 bits if the features have [`Features::LONG_SESSIONS`], otherwise 32.
    pub incarnation: u64,
    /// From clients: distance, in steps of 2, from the RPC's id down to the oldest id that the
    /// client may still have live towards this server. 24 bits; [`UdpFields::LOW_WATER_UNKNOWN`]
    /// states none. Servers send `LOW_WATER_UNKNOWN`. In NEED_ACK and DATA with [`Flags::CONFIRM`]:
    /// the [claim](UdpFields::claim) that the session belongs to (`AMO-1`).
    pub low_water: u32,
    /// Features that the sender supports beyond the first version of the profile.
    pub features: Features,
}

impl UdpFields {
    /// No statement about the low-water mark (it is too far away, or the sender is the server).
    pub const LOW_WATER_UNKNOWN: u32 = 0x00ff_ffff;

    /// Returns the claim of a client with this incarnation or session, as a question repeats it:
    /// the low 24 bits.
    #[must_use]
    pub const fn claim(incarnation: u64) -> u32 {
        incarnation as u32 & 0x00ff_ffff
    }

    /// Whether bytes 18 and 19 hold the upper part of a session.
    const fn is_long(self) -> bool {
        self.features.contains(Features::LONG_SESSIONS) && self.flags.contains(Flags::SESSION)
    }
}

impl Header {
    /// Returns a header of `kind` with the constants of its profile.
    #[must_use]
    pub const fn new(
        kind: Kind,
        sport: u16,
        dport: u16,
        sender_id: SenderId,
        dialect: Dialect,
    ) -> Self {
        let doff = match kind {
            Kind::Data => DOFF_DATA,
            _ => DOFF_CONTROL,
        };
        Self { sport, dport, sequence: 0, doff, dialect, sender_id }
    }

    /// Returns the sender id in the first bytes of a packet, such as the bytes that an ICMP error
    /// returns; `None` if there are too few.
    #[must_use]
    pub fn peek_sender_id(packet: &[u8]) -> Option<SenderId> {
        let id = packet.get(SENDER_ID..)?.first_chunk()?;
        Some(SenderId::from_wire(u64::from_be_bytes(*id)))
    }

    /// Returns the kind of the packet that starts with these bytes; `None` if there are too few.
    #[inline]
    pub fn peek_kind(bytes: &[u8]) -> Option<Kind> {
        Kind::from_wire(*bytes.get(KIND)?)
    }

    /// Returns the port of the sender of a packet of the udp profile, clear or sealed, that left
    /// from another one (`WIRE-36`); `None` for all other packets.
    #[inline]
    pub fn peek_sprayed(packet: &[u8]) -> Option<u16> {
        const SPRAYED: u8 = Features::SPRAYED.with(Features::LONG_SESSIONS).bits() as u8;
        let header: &[u8; HEADER_LEN] = packet.first_chunk()?;
        let is_sprayed = header[12] & SPRAYED == SPRAYED && header[KIND] == Kind::Data as u8;
        let in_session = Flags::from_bits(header[13]).contains(Flags::SESSION);
        (is_sprayed && (in_session || is_sealed(header))).then(|| read_u16(header, 0))
    }

    /// Marks an emitted DATA packet, in a session of 48 bits, as sent from another port
    /// (`WIRE-36`). Does nothing if it has no header.
    pub fn mark_sprayed(packet: &mut [u8]) {
        if let Some(features) = packet.get_mut(12) {
            *features |= Features::SPRAYED.bits() as u8;
        }
    }

    /// Returns the udp profile's fields; `None` in the kernel profile.
    #[must_use]
    pub const fn udp(&self) -> Option<&UdpFields> {
        match &self.dialect {
            Dialect::Udp(fields) => Some(fields),
            Dialect::Kernel(_) => None,
        }
    }

    /// Returns whether the sender states all of these features; `false` in the kernel profile.
    #[must_use]
    pub const fn states(&self, features: Features) -> bool {
        matches!(&self.dialect, Dialect::Udp(fields) if fields.features.contains(features))
    }

    /// Adds flags and features to a header of the udp profile. Does nothing in the kernel profile.
    pub const fn add(&mut self, flags: Flags, features: Features) {
        if let Dialect::Udp(fields) = &mut self.dialect {
            fields.flags = fields.flags.with(flags);
            fields.features = fields.features.with(features);
        }
    }

    /// Returns the profile of the header.
    #[must_use]
    pub const fn profile(&self) -> Profile {
        match self.dialect {
            Dialect::Udp(_) => Profile::Udp,
            Dialect::Kernel(_) => Profile::Kernel,
        }
    }

    /// Reads the common header and the packet's kind.
    #[inline(always)]
    pub(crate) fn parse(profile: Profile, bytes: &[u8]) -> Result<(Self, Kind), ParseError> {
        if bytes.len() < HEADER_LEN {
            let have = bytes.len();
            return Err(ParseError::TooShort { kind: None, need: HEADER_LEN, have });
        }
        let dialect = match profile {
            Profile::Kernel => Dialect::Kernel(KernelFields {
                ack: array(bytes, 8),
                flags: bytes[13],
                window: read_u16(bytes, 14),
                checksum: read_u16(bytes, 16),
                urgent: read_u16(bytes, 18),
            }),
            Profile::Udp => Dialect::Udp(parse_udp_fields(bytes)?),
        };
        let kind = Kind::from_wire(bytes[KIND]).ok_or_else(|| unknown_kind(profile, bytes))?;
        let header = Self {
            sport: read_u16(bytes, 0),
            dport: read_u16(bytes, 2),
            sequence: read_u32(bytes, 4),
            doff: if profile == Profile::Udp { bytes[12] & 0xf0 } else { bytes[12] },
            dialect,
            sender_id: SenderId::from_wire(read_u64(bytes, SENDER_ID)),
        };
        Ok((header, kind))
    }

    /// Writes the header into the first [`HEADER_LEN`] bytes of `out`.
    #[inline(always)]
    pub(crate) fn emit(&self, kind: Kind, out: &mut HeaderBuffer) {
        write_u16(out, 0, self.sport);
        write_u16(out, 2, self.dport);
        write_u32(out, 4, self.sequence);
        out[KIND] = kind as u8;
        out[12] = self.doff;
        match &self.dialect {
            Dialect::Kernel(fields) => {
                out[8..11].copy_from_slice(&fields.ack);
                out[13] = fields.flags;
                write_u16(out, 14, fields.window);
                write_u16(out, 16, fields.checksum);
                write_u16(out, 18, fields.urgent);
            }
            Dialect::Udp(fields) => {
                out[8..11].copy_from_slice(&fields.low_water.to_be_bytes()[1..]);
                out[13] = (UDP_VERSION << 4) | fields.flags.bits();
                write_u32(out, 14, fields.incarnation as u32);
                let features = fields.features.bits();
                if fields.is_long() {
                    out[12] |= features as u8 & FEATURES_NIBBLE;
                    write_u16(out, 18, (fields.incarnation >> 32) as u16);
                } else {
                    write_u16(out, 18, features);
                }
            }
        }
        write_u64(out, SENDER_ID, self.sender_id.to_wire());
    }
}

#[inline(always)]
fn parse_udp_fields(bytes: &[u8]) -> Result<UdpFields, ParseError> {
    let version = bytes[13] >> 4;
    if version != UDP_VERSION {
        return Err(ParseError::UnknownVersion(version));
    }
    let mut fields = UdpFields {
        flags: Flags::from_bits(bytes[13]),
        incarnation: u64::from(read_u32(bytes, 14)),
        low_water: read_u32(bytes, 7) & 0x00ff_ffff,
        features: Features::from_bits(u16::from(bytes[12] & FEATURES_NIBBLE)),
    };
    let last = read_u16(bytes, 18);
    if fields.is_long() {
        fields.incarnation |= u64::from(last) << 32;
    } else if fields.flags.contains(Flags::SESSION) {
        fields.features = Features::from_bits(last).without(Features::LONG_SESSIONS);
    } else {
        fields.features = Features::from_bits(last);
    }
    Ok(fields)
}

/// Returns the error for a packet of unknown type, which has at least a common header.
#[cold]
fn unknown_kind(profile: Profile, bytes: &[u8]) -> ParseError {
    let layout = older::without_kind(profile, bytes);
    layout.map_or(ParseError::UnknownKind(bytes[KIND]), ParseError::OlderLayout)
}
