//! Errors of malformed packets.

use crate::kind::Kind;
use crate::older::OlderLayout;
use core::fmt;

/// Why bytes are not a packet. Always caused by the peer or the network.
///
/// HM `homa_incoming.c` `homa_add_packet` and `homa_message_in_init`,
/// `homa_plumbing.c` `homa_softirq`; requirement `WIRE-3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParseError {
    /// Fewer bytes than the common header, or than the header of the packet's kind.
    TooShort {
        /// The kind, once it could be read.
        kind: Option<Kind>,
        /// Least number of bytes of such a packet.
        need: usize,
        /// Number of bytes received.
        have: usize,
    },
    /// Byte 11 names no packet type.
    UnknownKind(u8),
    /// The udp profile's version is not [`crate::UDP_VERSION`].
    UnknownVersion(u8),
    /// A message of length zero in the kernel profile, whose messages have at least one byte
    /// (HM `homa_outgoing.c` `homa_message_out_fill`).
    EmptyMessage,
    /// A DATA packet without data, of a message that has some.
    EmptyData,
    /// A DATA packet that extends past the end of its message.
    DataBeyondEnd {
        /// Just past the last byte of the packet's data.
        end: u64,
        /// The message's length.
        message_length: u32,
    },
    /// An ACK that claims more entries than fit.
    TooManyAcks(u16),
    /// A GRANT or RESEND with a priority above 7.
    PriorityOutOfRange(u8),
    /// Kernel profile: the packet of a module that is too old to be understood (`WIRE-27`).
    OlderLayout(OlderLayout),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooShort { kind: None, need, have } => {
                write!(f, "{have} bytes, but a header has {need}")
            }
            Self::TooShort { kind: Some(kind), need, have } => {
                write!(f, "{have} bytes, but a {kind} packet has at least {need}")
            }
            Self::UnknownKind(value) => write!(f, "unknown packet type {value:#04x}"),
            Self::UnknownVersion(version) => write!(f, "unknown version {version}"),
            Self::EmptyMessage => f.write_str("message length is zero in the kernel profile"),
            Self::EmptyData => f.write_str("DATA packet without data"),
            Self::DataBeyondEnd { end, message_length } => {
                write!(f, "data ends at {end} in a message of {message_length} bytes")
            }
            Self::TooManyAcks(count) => write!(f, "{count} acks in one packet"),
            Self::PriorityOutOfRange(value) => write!(f, "priority {value}"),
            Self::OlderLayout(layout) => write!(f, "{layout}: the module there must be renewed"),
        }
    }
}

impl core::error::Error for ParseError {}
