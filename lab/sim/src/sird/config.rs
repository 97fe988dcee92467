//! Parameters of SIRD, with the sources of their values.

use apus_workload::PacketOverhead;
use apus_workload::time::{Nanos, Rate};

use crate::topology::Topology;

/// Pace of credit in hundredths of the link's rate. Chosen by us: the paper paces slightly below
/// the rate.
const PACE_PERCENT: u64 = 98;

/// Parameters of SIRD. All bytes are bytes on a link, headers, preamble and gap included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Division of messages into packets.
    pub packets: PacketOverhead,
    /// Rate of the links of hosts.
    pub rate: Rate,
    /// Bytes that a link carries in a round-trip time (BDP): the maximum credit of a sender.
    pub bdp: u64,
    /// Longest message that starts without credit (UnschT): 1 BDP in the paper. Longer messages
    /// request credit first; with [`u64::MAX`] each message starts with 1 BDP.
    pub unscheduled_limit: u64,
    /// Maximum bytes that a receiver expects when it gives credit (B): 1.5 BDP in the paper.
    pub global_limit: u64,
    /// Bytes of unused credit beyond which a sender reports itself busy (SThr): 0.5 BDP in the
    /// paper. [`u64::MAX`] disables it.
    pub sender_threshold: u64,
    /// Queue length in bytes from which a port at the hosts' rate marks packets (`NThr`): 1.25 BDP
    /// in the paper.
    pub marking_threshold: u64,
    /// Pace of credit in hundredths of the link's rate; 0 gives credit as soon as the limits allow.
    pub pace_percent: u64,
}

impl Config {
    /// Returns the paper's parameters for a fabric. The round-trip time is measured by a credit and
    /// a full packet between hosts of different racks, if there are several racks.
    #[must_use]
    pub fn new(topology: &Topology, packets: PacketOverhead) -> Self {
        let peer = topology.shape.hosts() - 1;
        let control = topology.unloaded(0, peer, 1, 0, u64::from(packets.minimum));
        let full = topology.unloaded(peer, 0, 1, 0, packets.wire_bytes(packets.payload));
        let bdp = topology.host_rate.bytes(control + full);
        Self {
            packets,
            rate: topology.host_rate,
            bdp,
            unscheduled_limit: bdp,
            global_limit: bdp * 3 / 2,
            sender_threshold: bdp / 2,
            marking_threshold: bdp * 5 / 4,
            pace_percent: PACE_PERCENT,
        }
    }

    /// Returns the bytes of a full packet.
    #[must_use]
    pub fn full_packet(&self) -> u64 {
        self.packets.wire_bytes(self.packets.payload)
    }

    /// Returns the payload length of the packet at `offset` of a message of `length` bytes.
    #[must_use]
    pub fn payload(&self, length: u32, offset: u32) -> u32 {
        self.packets.payload.min(length - offset)
    }

    /// Returns the payload bytes that a message of `length` bytes sends without credit, in whole
    /// packets.
    #[must_use]
    pub fn unscheduled(&self, length: u32) -> u32 {
        let all = self.packets.wire_bytes(length);
        if all > self.unscheduled_limit {
            0
        } else if all <= self.bdp {
            length
        } else {
            (self.bdp / self.full_packet()) as u32 * self.packets.payload
        }
    }

    /// Returns the time from the credit for a packet of `bytes` bytes to the next credit.
    #[must_use]
    pub fn pace(&self, bytes: u64) -> Nanos {
        (self.rate.time(bytes) * 100).checked_div(self.pace_percent).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    /// 7.74 µs at 10 Gbit/s (docs/reference/papers.md, *Simulation set-up*).
    #[test]
    fn limits_follow_the_round_trip_time() {
        let config = Config::new(&preset::sigcomm18(), PacketOverhead::UDP_OVER_ETHERNET);
        assert!((9_500..9_800).contains(&config.bdp), "{config:?}");
        assert_eq!(config.full_packet(), 1_538);
        assert_eq!(config.unscheduled(8_000), 8_000);
        assert_eq!(config.unscheduled(10_000), 0, "more than a BDP");
        let all = Config { unscheduled_limit: u64::MAX, ..config };
        assert_eq!(all.unscheduled(10_000), 6 * 1_416);
        assert_eq!(config.pace(1_538), 1_255, "1,230 ns at the link's rate");
        assert_eq!(Config { pace_percent: 0, ..config }.pace(1_538), 0);
    }
}
