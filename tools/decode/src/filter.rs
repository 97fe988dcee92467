//! Which packets does somebody want to see?

use std::fmt;
use std::str::FromStr;

use apus_wire::Kind;
use thiserror::Error;

use crate::packet::{Content, Packet};

/// A type of packets, as a filter names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// Whole packets of a type.
    Kind(Kind),
    /// ICMP messages about packets.
    Icmp,
    /// Packets that are none.
    Malformed,
    /// Packets of which the capture does not hold enough.
    Cut,
}

/// No type has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no packets have the type `{name}`; there are {}", Type::names())]
pub struct UnknownType {
    name: String,
}

impl Type {
    /// All types, in the order in which summaries list them.
    pub fn all() -> impl Iterator<Item = Self> {
        let others = [Self::Icmp, Self::Malformed, Self::Cut];
        Kind::ALL.into_iter().map(Self::Kind).chain(others)
    }

    /// That of a packet.
    #[must_use]
    pub fn of(packet: &Packet) -> Self {
        match &packet.content {
            Content::Whole { body, .. } => Self::Kind(body.kind()),
            Content::Malformed { .. } => Self::Malformed,
            Content::Cut { .. } => Self::Cut,
            Content::Unreachable { .. } => Self::Icmp,
        }
    }

    fn names() -> String {
        Self::all().map(|each| each.to_string()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kind(kind) => kind.name(),
            Self::Icmp => "ICMP",
            Self::Malformed => "malformed",
            Self::Cut => "cut",
        })
    }
}

/// Names are taken in any case.
impl FromStr for Type {
    type Err = UnknownType;

    fn from_str(name: &str) -> Result<Self, UnknownType> {
        let found = Self::all().find(|each| each.to_string().eq_ignore_ascii_case(name));
        found.ok_or_else(|| UnknownType { name: name.to_owned() })
    }
}

/// Which packets are meant: those that fit each list that is not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Ids of RPCs, whoever's view they are from. A packet fits too if it acknowledges one.
    pub rpcs: Vec<u64>,
    /// Types.
    pub types: Vec<Type>,
    /// Ports, of either end.
    pub ports: Vec<u16>,
}

impl Filter {
    /// Whether the packet is meant.
    #[must_use]
    pub fn fits(&self, packet: &Packet) -> bool {
        self.fits_rpc(packet) && self.fits_type(packet) && self.fits_port(packet)
    }

    fn fits_rpc(&self, packet: &Packet) -> bool {
        let wanted = |id: u64| self.rpcs.iter().any(|rpc| rpc & !1 == id & !1);
        self.rpcs.is_empty()
            || packet.sender_id().is_some_and(|id| wanted(id.client_id()))
            || packet.acks().any(|ack| wanted(ack.client_id))
    }

    fn fits_type(&self, packet: &Packet) -> bool {
        self.types.is_empty() || self.types.contains(&Type::of(packet))
    }

    fn fits_port(&self, packet: &Packet) -> bool {
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
        for each in Type::all() {
            assert_eq!(each.to_string().to_lowercase().parse(), Ok(each));
        }
        let error = "dat".parse::<Type>().unwrap_err().to_string();
        assert!(error.contains("`dat`; there are DATA, GRANT, "), "{error}");
    }
}
