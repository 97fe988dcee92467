//! Packet types.

use crate::lengths::{BRIEF_RESEND_LEN, DATA_HEADER_LEN, HEADER_LEN, MAX_HEADER_LEN};
use crate::profile::Profile;

/// The type of a packet (byte 11).
///
/// Source: docs/reference/homa-module.md, *Packet types* (values), *Packets* (meaning).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// A piece of a message.
    Data = 0x10,
    /// The receiver allows the sender to transmit further bytes.
    Grant = 0x11,
    /// The receiver requests bytes again.
    Resend = 0x12,
    /// The answer to a RESEND for an RPC that its receiver does not have.
    RpcUnknown = 0x13,
    /// The sender is alive and the receiver has to wait: resets the silence counter.
    Busy = 0x14,
    /// The priorities that a host requests for unscheduled packets.
    Cutoffs = 0x15,
    /// Debugging: freeze the time traces.
    Freeze = 0x16,
    /// A server's question whether the client still needs the state of an RPC.
    NeedAck = 0x17,
    /// A client releases the server's state of one or several RPCs.
    Ack = 0x18,
}

impl Kind {
    /// All kinds, in the order of their values.
    pub const ALL: [Self; 9] = [
        Self::Data,
        Self::Grant,
        Self::Resend,
        Self::RpcUnknown,
        Self::Busy,
        Self::Cutoffs,
        Self::Freeze,
        Self::NeedAck,
        Self::Ack,
    ];

    /// Returns the kind with this value on the wire, if it is defined.
    #[must_use]
    pub const fn from_wire(value: u8) -> Option<Self> {
        match value {
            0x10 => Some(Self::Data),
            0x11 => Some(Self::Grant),
            0x12 => Some(Self::Resend),
            0x13 => Some(Self::RpcUnknown),
            0x14 => Some(Self::Busy),
            0x15 => Some(Self::Cutoffs),
            0x16 => Some(Self::Freeze),
            0x17 => Some(Self::NeedAck),
            0x18 => Some(Self::Ack),
            _ => None,
        }
    }

    /// Returns the length of the shortest header of this kind, payload not counted. Shorter packets
    /// are refused (HM `homa_plumbing.c` `homa_softirq`).
    #[must_use]
    pub const fn min_len(self, profile: Profile) -> usize {
        match (self, profile) {
            (Self::Ack, Profile::Udp) => HEADER_LEN + 2,
            // The stripped module of the upstream kernel leaves the level out (WIRE-26).
            (Self::Resend, Profile::Kernel) => BRIEF_RESEND_LEN,
            _ => self.header_len(),
        }
    }

    /// Returns the length of the header of this kind in bytes, payload not counted. The udp profile
    /// shortens one of them: an ACK leaves out the entries that it does not use.
    #[must_use]
    pub const fn header_len(self) -> usize {
        match self {
            Self::Data => DATA_HEADER_LEN,
            Self::Grant => HEADER_LEN + 5,
            Self::Resend => HEADER_LEN + 9,
            Self::RpcUnknown | Self::Busy | Self::Freeze | Self::NeedAck => HEADER_LEN,
            Self::Cutoffs => HEADER_LEN + 34,
            Self::Ack => MAX_HEADER_LEN,
        }
    }

    /// Returns the kind's name in the literature.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "DATA",
            Self::Grant => "GRANT",
            Self::Resend => "RESEND",
            Self::RpcUnknown => "RPC_UNKNOWN",
            Self::Busy => "BUSY",
            Self::Cutoffs => "CUTOFFS",
            Self::Freeze => "FREEZE",
            Self::NeedAck => "NEED_ACK",
            Self::Ack => "ACK",
        }
    }
}

impl core::fmt::Display for Kind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_survives_the_way_over_the_wire() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_wire(kind as u8), Some(kind));
        }
        assert_eq!(Kind::from_wire(0x0f), None);
        assert_eq!(Kind::from_wire(0x19), None);
    }

    /// The lengths of docs/reference/homa-module.md, *Packet types*, written out so that a change
    /// of a constant shows.
    #[test]
    fn header_lengths_are_those_of_the_kernel() {
        let lengths = Kind::ALL.map(Kind::header_len);
        assert_eq!(lengths, [56, 33, 37, 28, 28, 62, 28, 28, 80]);
    }
}
