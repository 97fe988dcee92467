//! Packet filters: select packets by RPC, type and port.

use std::fmt;
use std::str::FromStr;

use apus_wire::Kind;
use thiserror::Error;

use crate::packet::{CapturedPacket, Content};

/// Packet type, with the name that filters and summaries use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PacketType {
    /// A valid packet of this Homa type.
    Kind(Kind),
    /// An ICMP error about a Homa packet.
    Icmp,
    /// A sealed packet, or a handshake packet.
    Sealed,
    /// A packet that violates the wire format.
    Malformed,
    /// A packet cut too short by the capture to be decoded.
    Truncated,
}

/// Error: no packet type has the given name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown packet type `{name}`; the types are {}", PacketType::names())]
pub struct UnknownPacketType {
    name: String,
}

impl PacketType {
    /// Returns all types, in the order of summaries.
    pub fn all() -> impl Iterator<Item = Self> {
        let others = [Self::Sealed, Self::Icmp, Self::Malformed, Self::Truncated];
        Kind::ALL.into_iter().map(Self::Kind).chain(others)
    }

    /// Returns the type of a packet.
    #[must_use]
    pub fn of(packet: &CapturedPacket) -> Self {
        match &packet.content {
            Content::Whole { body, .. } => Self::Kind(body.kind()),
            Content::Sealed { .. } => Self::Sealed,
            Content::Malformed { .. } => Self::Malformed,
            Content::Truncated { .. } => Self::Truncated,
            Content::Unreachable { .. } => Self::Icmp,
        }
    }

    fn names() -> String {
        Self::all().map(|each| each.to_string()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for PacketType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kind(kind) => kind.name(),
            Self::Sealed => "sealed",
            Self::Icmp => "ICMP",
            Self::Malformed => "malformed",
            Self::Truncated => "cut",
        })
    }
}

/// Parses a name without regard to case.
impl FromStr for PacketType {
    type Err = UnknownPacketType;

    fn from_str(name: &str) -> Result<Self, UnknownPacketType> {
        let selected = Self::all().find(|each| each.to_string().eq_ignore_ascii_case(name));
        selected.ok_or_else(|| UnknownPacketType { name: name.to_owned() })
    }
}

/// Packet filter: a packet matches if it matches every list that is not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketFilter {
    /// Ids of RPCs, as written by client or server. A packet that acknowledges one of these RPCs
    /// matches too.
    pub rpcs: Vec<u64>,
    /// Packet types.
    pub types: Vec<PacketType>,
    /// Ports of the sender or receiver.
    pub ports: Vec<u16>,
}

impl PacketFilter {
    /// Returns whether the packet passes the filter.
    #[must_use]
    pub fn matches(&self, packet: &CapturedPacket) -> bool {
        self.matches_rpc(packet) && self.matches_type(packet) && self.matches_port(packet)
    }

    fn matches_rpc(&self, packet: &CapturedPacket) -> bool {
        let is_selected = |id: u64| self.rpcs.iter().any(|rpc| rpc & !1 == id & !1);
        self.rpcs.is_empty()
            || packet.sender_id().is_some_and(|id| is_selected(id.client_id()))
            || packet.acks().any(|ack| is_selected(ack.client_id))
    }

    fn matches_type(&self, packet: &CapturedPacket) -> bool {
        self.types.is_empty() || self.types.contains(&PacketType::of(packet))
    }

    fn matches_port(&self, packet: &CapturedPacket) -> bool {
        let (from, to) = match &packet.content {
            Content::Unreachable { about, .. } => (about.from, about.to),
            _ => (packet.from, packet.to),
        };
        self.ports.is_empty()
            || self.ports.contains(&from.port())
            || self.ports.contains(&to.port())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_their_names() {
        for each in PacketType::all() {
            assert_eq!(each.to_string().to_lowercase().parse(), Ok(each));
        }
        let error = "dat".parse::<PacketType>().unwrap_err().to_string();
        assert!(error.contains("`dat`; the types are DATA, GRANT, "), "{error}");
    }
}
