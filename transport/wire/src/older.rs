//! Recognition of packets of kernel modules that are too old.
//!
//! The kernel's header has no version. Modules from before December 2024 put fields elsewhere;
//! their packets, parsed as today's, would be garbage that is not noticed. They are recognised by
//! their differences, and refused under their name. Source: docs/reference/homa-module.md, *History
//! of the wire format* and *Variants*; requirement `WIRE-27`.

use crate::kind::Kind;
use crate::lengths::{DATA_HEADER_LEN, HEADER_LEN};
use crate::profile::Profile;
use core::fmt;

/// A layout of the kernel module's packets that is no longer spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OlderLayout {
    /// Before July 2024 (v1.0 to v2.0.1 and what followed): the type is in byte 13, a DATA header
    /// has 60 bytes.
    TypeInByte13,
    /// Before 10 December 2024: an ack has 12 bytes, because it names the client's port, too.
    AcksOf12Bytes,
}

impl fmt::Display for OlderLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TypeInByte13 => "layout of a Homa module from before July 2024 (type in byte 13)",
            Self::AcksOf12Bytes => {
                "layout of a Homa module from before December 2024 (acks of 12 bytes)"
            }
        })
    }
}

/// Bytes of an ACK packet with entries of 12 bytes. Today's has 80, with no bytes behind them.
const OLDER_ACK_LEN: usize = HEADER_LEN + 2 + 5 * 12;

/// Returns the older layout of a packet of the kernel profile whose byte 11 names no type. `bytes`
/// has at least a common header.
pub(crate) fn without_kind(profile: Profile, bytes: &[u8]) -> Option<OlderLayout> {
    // Byte 13 holds flags today, which the module sets to 6; no type has that value.
    let older = bytes[11] == 0 && Kind::from_wire(bytes[13]).is_some();
    (profile == Profile::Kernel && older).then_some(OlderLayout::TypeInByte13)
}

/// Returns the older layout of a packet whose acks have 12 bytes, as far as it differs from
/// today's.
///
/// A DATA packet had the same length then, with the cutoffs' version in the place of today's
/// retransmit flag and first byte of padding. While its sender has no cutoffs and nothing to
/// acknowledge, it equals today's.
pub(crate) fn entries_of(kind: Kind, bytes: &[u8]) -> Option<OlderLayout> {
    let older = match kind {
        Kind::Ack => bytes.len() == OLDER_ACK_LEN,
        Kind::Data => {
            bytes.get(49..52).is_some_and(|pad| pad != [0; 3]) && bytes.len() >= DATA_HEADER_LEN
        }
        _ => false,
    };
    older.then_some(OlderLayout::AcksOf12Bytes)
}
