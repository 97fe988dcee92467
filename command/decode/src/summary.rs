//! Summary of a capture: packets by type, completion times of RPCs.

use std::collections::{BTreeMap, BTreeSet};

use apus_wire::{Body, Profile};

use crate::filter::PacketType;
use crate::note::RpcIndex;
use crate::packet::{CapturedPacket, Content};
use crate::rpc::CapturedRpc;

/// Running totals of packets.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    types: BTreeMap<PacketType, TypeCounts>,
    rpcs: BTreeSet<RpcIndex>,
    profiles: [u64; 2],
    unopened: u64,
    span: Option<(i64, i64)>,
}

/// Totals of one packet type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeCounts {
    /// Number of packets.
    pub packets: u64,
    /// Bytes on the network, without IP and UDP headers.
    pub bytes: u64,
    /// Number of retransmitted packets.
    pub retransmitted: u64,
}

/// Percentiles of completion times, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionTimes {
    /// Number of completed RPCs.
    pub rpcs: usize,
    /// Median.
    pub p50: i64,
    /// 99th percentile.
    pub p99: i64,
    /// Maximum.
    pub max: i64,
}

impl Summary {
    /// Counts a packet.
    pub fn add(&mut self, packet: &CapturedPacket) {
        let of_type = self.types.entry(PacketType::of(packet)).or_default();
        of_type.packets += 1;
        of_type.bytes += packet.len as u64;
        if let Content::Whole { body: Body::Data(data, _), .. } = &packet.content {
            of_type.retransmitted += u64::from(data.retransmit);
        }
        let is_unopened = |content: &Content| matches!(content, Content::Sealed { sealed, .. } if sealed.kind.is_none());
        self.unopened += u64::from(is_unopened(&packet.content));
        self.profiles[usize::from(packet.profile == Profile::Udp)] += 1;
        self.rpcs.extend(packet.note.as_ref().map(|note| note.rpc));
        let (first, last) = self.span.unwrap_or((packet.time, packet.time));
        self.span = Some((first.min(packet.time), last.max(packet.time)));
    }

    /// Returns the number of packets.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.types.values().map(|each| each.packets).sum()
    }

    /// Returns the number of sealed packets that were not opened; handshake packets are not
    /// counted.
    #[must_use]
    pub const fn unopened(&self) -> u64 {
        self.unopened
    }

    /// Returns the number of packets of one wire profile.
    #[must_use]
    pub fn of_profile(&self, profile: Profile) -> u64 {
        self.profiles[usize::from(profile == Profile::Udp)]
    }

    /// Returns the nanoseconds from the first packet to the last.
    #[must_use]
    pub fn span(&self) -> i64 {
        self.span.map_or(0, |(first, last)| last.saturating_sub(first))
    }

    /// Returns the totals by type; types that do not occur are omitted.
    pub fn types(&self) -> impl Iterator<Item = (PacketType, TypeCounts)> + '_ {
        self.types.iter().map(|(name, of_type)| (*name, *of_type))
    }

    /// Returns the RPCs of the counted packets, in order of first appearance in the capture.
    pub fn rpcs<'a>(&'a self, all: &'a [CapturedRpc]) -> impl Iterator<Item = &'a CapturedRpc> {
        self.rpcs.iter().filter_map(|index| all.get(index.0))
    }

    /// Returns percentiles of the times from the first packet of the request to the end of the
    /// response; `None` if no RPC is complete.
    #[must_use]
    pub fn completion_times(&self, all: &[CapturedRpc]) -> Option<CompletionTimes> {
        let mut times: Vec<i64> = self.rpcs(all).filter_map(CapturedRpc::completion_time).collect();
        times.sort_unstable();
        let rank =
            |part: usize| times.get((times.len() * part).div_ceil(100).saturating_sub(1)).copied();
        Some(CompletionTimes {
            rpcs: times.len(),
            p50: rank(50)?,
            p99: rank(99)?,
            max: *times.last()?,
        })
    }
}
