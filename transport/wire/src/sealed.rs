//! Sealed packets: version 2 of the udp profile.
//!
//! The header keeps its 28 bytes, readable and authenticated. The rest is encrypted, and a tag of
//! 16 bytes ends the packet. Bytes 14 to 19, the session in version 1, hold the packet number: the
//! key makes the session superfluous. Bit 0 of byte 13 is the phase of the key. Requirements
//! SEAL-1, SEAL-2 and SEAL-8; `apus-seal` has the keys.

use crate::bytes::{read_u32, read_u64, write_u16, write_u32, write_u64};
use crate::lengths::HEADER_LEN;
use crate::profile::{Flags, UDP_VERSION};

/// The version of sealed packets in the udp profile (high nibble of byte 13).
pub const SEALED_VERSION: u8 = 2;

const KIND: usize = 11;
const VERSION: usize = 13;
const NUMBER: usize = 14;
const ID: usize = 20;

/// Packets of the handshake, and about missing keys: the types that only version 2 has (byte 11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SealKind {
    /// First part of a handshake, in the clear.
    Hello = 0x20,
    /// Second part of a handshake, sealed with its own keys.
    Finish = 0x21,
    /// The server has completed the handshake; sealed like any packet.
    Ready = 0x22,
    /// The server is under load: the client repeats its HELLO with this cookie.
    Retry = 0x23,
    /// The receiver of a sealed packet has no key for it.
    NoKey = 0x24,
    /// The handshake has failed, with its cause.
    Failed = 0x25,
}

impl SealKind {
    /// All kinds, in the order of their values.
    pub const ALL: [Self; 6] =
        [Self::Hello, Self::Finish, Self::Ready, Self::Retry, Self::NoKey, Self::Failed];

    /// Returns the kind with this value on the wire, if it is defined.
    #[must_use]
    pub const fn from_wire(value: u8) -> Option<Self> {
        match value {
            0x20 => Some(Self::Hello),
            0x21 => Some(Self::Finish),
            0x22 => Some(Self::Ready),
            0x23 => Some(Self::Retry),
            0x24 => Some(Self::NoKey),
            0x25 => Some(Self::Failed),
            _ => None,
        }
    }
}

/// The readable part of a packet of version 2, as far as sealing needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedHeader {
    /// The type, if only version 2 has it; `None` in sealed packets of the protocol.
    pub kind: Option<SealKind>,
    /// Whether the key has an odd generation.
    pub phase: bool,
    /// The packet number, 48 bits.
    pub number: u64,
    /// Bytes 4 to 7.
    pub sequence: u32,
    /// Bytes 20 to 27: the RPC id, or the id of a handshake.
    pub id: u64,
}

impl SealedHeader {
    /// Reads the header of a packet; `None` if it is too short or of another version.
    #[must_use]
    #[inline]
    pub fn parse(packet: &[u8]) -> Option<Self> {
        if packet.len() < HEADER_LEN || packet[VERSION] >> 4 != SEALED_VERSION {
            return None;
        }
        Some(Self {
            kind: SealKind::from_wire(packet[KIND]),
            phase: packet[VERSION] & Flags::SESSION.bits() != 0,
            number: read_u64(packet, NUMBER) >> 16,
            sequence: read_u32(packet, 4),
            id: read_u64(packet, ID),
        })
    }

    /// Writes a header of one of the types of version 2.
    ///
    /// # Panics
    ///
    /// If `out` is shorter than [`HEADER_LEN`].
    pub fn emit(kind: SealKind, ports: (u16, u16), sequence: u32, id: u64, out: &mut [u8]) {
        out[..HEADER_LEN].fill(0);
        write_u16(out, 0, ports.0);
        write_u16(out, 2, ports.1);
        write_u32(out, 4, sequence);
        out[KIND] = kind as u8;
        out[12] = 5 << 4;
        out[VERSION] = SEALED_VERSION << 4;
        write_u64(out, ID, id);
    }

    /// Makes the header of a sealed packet from the header of a packet of version 1 in a session,
    /// or of a type of version 2.
    ///
    /// # Panics
    ///
    /// If `header` is shorter than [`HEADER_LEN`].
    #[inline]
    pub fn seal(header: &mut [u8], number: u64, phase: bool) {
        let flags = header[VERSION] & 0x0f & !Flags::SESSION.bits();
        header[VERSION] = SEALED_VERSION << 4 | flags | u8::from(phase);
        header[NUMBER..ID].copy_from_slice(&number.to_be_bytes()[2..]);
    }

    /// Makes the header of version 1 in `session` again, after the packet was opened.
    ///
    /// # Panics
    ///
    /// If `header` is shorter than [`HEADER_LEN`].
    #[inline]
    pub fn open(header: &mut [u8], session: u64) {
        let flags = header[VERSION] & 0x0f | Flags::SESSION.bits();
        header[VERSION] = UDP_VERSION << 4 | flags;
        write_u32(header, NUMBER, session as u32);
        write_u16(header, NUMBER + 4, (session >> 32) as u16);
    }

    /// Returns the session that a packet of version 1 carries; `None` if it carries none, or one of
    /// 32 bits.
    #[must_use]
    #[inline]
    pub fn session(packet: &[u8]) -> Option<u64> {
        let long = crate::Features::LONG_SESSIONS.bits() as u8;
        let is_in_session = packet.len() >= HEADER_LEN
            && packet[VERSION] >> 4 == UDP_VERSION
            && packet[VERSION] & Flags::SESSION.bits() != 0
            && packet[12] & long != 0;
        is_in_session.then(|| {
            let upper = u64::from(packet[NUMBER + 4]) << 8 | u64::from(packet[NUMBER + 5]);
            u64::from(read_u32(packet, NUMBER)) | upper << 32
        })
    }
}

/// Returns whether a packet is one of version 2.
#[must_use]
#[inline]
pub fn is_sealed(packet: &[u8]) -> bool {
    packet.len() >= HEADER_LEN && packet[VERSION] >> 4 == SEALED_VERSION
}
