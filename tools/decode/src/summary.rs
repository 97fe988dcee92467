//! What do many packets say together?

use std::collections::{BTreeMap, BTreeSet};

use apus_wire::{Body, Profile};

use crate::filter::Type;
use crate::packet::{Content, Packet};
use crate::rpc::{Rpc, RpcIndex};

/// Counts packets as they come.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    types: BTreeMap<Type, OfType>,
    rpcs: BTreeSet<RpcIndex>,
    profiles: [u64; 2],
    span: Option<(i64, i64)>,
}

/// Packets of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfType {
    /// How many.
    pub packets: u64,
    /// Their bytes on the network, without IP and UDP headers.
    pub bytes: u64,
    /// Those that were sent again.
    pub retransmitted: u64,
}

/// Times of RPCs, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How many RPCs have one.
    pub rpcs: usize,
    /// Half of them took so long at most.
    pub p50: i64,
    /// The same of 99 in a hundred.
    pub p99: i64,
    /// The longest.
    pub max: i64,
}

impl Summary {
    /// Counts a packet.
    pub fn add(&mut self, packet: &Packet) {
        let of_type = self.types.entry(Type::of(packet)).or_default();
        of_type.packets += 1;
        of_type.bytes += packet.len as u64;
        if let Content::Whole { body: Body::Data(data, _), .. } = &packet.content {
            of_type.retransmitted += u64::from(data.retransmit);
        }
        self.profiles[usize::from(packet.profile == Profile::Udp)] += 1;
        self.rpcs.extend(packet.note.as_ref().map(|note| note.rpc));
        let (first, last) = self.span.unwrap_or((packet.time, packet.time));
        self.span = Some((first.min(packet.time), last.max(packet.time)));
    }

    /// How many packets there were.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.types.values().map(|each| each.packets).sum()
    }

    /// The same of one dialect.
    #[must_use]
    pub fn of_profile(&self, profile: Profile) -> u64 {
        self.profiles[usize::from(profile == Profile::Udp)]
    }

    /// Nanoseconds from the first packet to the last one.
    #[must_use]
    pub fn span(&self) -> i64 {
        self.span.map_or(0, |(first, last)| last.saturating_sub(first))
    }

    /// What there was of each type, those left out of which there was nothing.
    pub fn types(&self) -> impl Iterator<Item = (Type, OfType)> + '_ {
        self.types.iter().map(|(name, of_type)| (*name, *of_type))
    }

    /// The RPCs that packets belong to, in the order in which they appear in the capture.
    pub fn rpcs<'a>(&'a self, all: &'a [Rpc]) -> impl Iterator<Item = &'a Rpc> {
        self.rpcs.iter().filter_map(|index| all.get(index.0))
    }

    /// How long those RPCs took, from the request's first packet to the response's end.
    #[must_use]
    pub fn times(&self, all: &[Rpc]) -> Option<Times> {
        let mut times: Vec<i64> = self.rpcs(all).filter_map(Rpc::completion_time).collect();
        times.sort_unstable();
        let rank =
            |part: usize| times.get((times.len() * part).div_ceil(100).saturating_sub(1)).copied();
        Some(Times { rpcs: times.len(), p50: rank(50)?, p99: rank(99)?, max: *times.last()? })
    }
}
