//! Size of a message on the wire, with the headers of its packets.

use crate::size_distribution::SizeDistribution;

/// Division of a message into packets, and the bytes that each packet takes in addition to its
/// payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketOverhead {
    /// Payload bytes of a full packet; at least 1.
    pub payload: u32,
    /// Bytes of every packet in addition to its payload: headers, checksums, gaps.
    pub overhead: u32,
    /// Minimum size of a packet in bytes, overhead included.
    pub minimum: u32,
}

/// Bytes that Ethernet adds to an IP packet: preamble 8, addresses and type 14, checksum 4, gap 12.
/// Source: IEEE 802.3.
const ETHERNET_FRAMING: u32 = 8 + 14 + 4 + 12;

/// Minimum size of an Ethernet frame with preamble and gap: 64 + 8 + 12. Source: IEEE 802.3.
const ETHERNET_MINIMUM: u32 = 84;

impl PacketOverhead {
    /// apus over UDP and IPv4 on Ethernet with an MTU of 1500 bytes: headers of 20 (IPv4), 8 (UDP)
    /// and 56 bytes (a DATA packet of Homa).
    pub const UDP_OVER_ETHERNET: Self = Self::ethernet(1500, 20 + 8 + 56);

    /// Returns the overhead of Ethernet with packets of at most `mtu` bytes, including `headers`
    /// bytes of headers (from the IP header on).
    ///
    /// # Panics
    ///
    /// The headers leave no room for payload.
    #[must_use]
    pub const fn ethernet(mtu: u32, headers: u32) -> Self {
        assert!(headers < mtu, "the headers leave no room for payload");
        Self {
            payload: mtu - headers,
            overhead: headers + ETHERNET_FRAMING,
            minimum: ETHERNET_MINIMUM,
        }
    }

    /// Returns the bytes that a message of `size` bytes takes on the wire. An empty message is one
    /// packet (WORKLOAD-2).
    #[must_use]
    pub fn wire_bytes(&self, size: u32) -> u64 {
        let full = size / self.payload;
        let rest = size % self.payload;
        let packet = |payload: u32| u64::from((payload + self.overhead).max(self.minimum));
        u64::from(full) * packet(self.payload)
            + if rest > 0 || size == 0 { packet(rest) } else { 0 }
    }

    /// Returns the bytes that a message takes on the wire on average.
    #[must_use]
    pub fn mean_wire_bytes(&self, sizes: &SizeDistribution) -> f64 {
        sizes.iter().map(|(size, share)| self.wire_bytes(size) as f64 * share).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_pays_for_each_of_its_packets() {
        let cost = PacketOverhead { payload: 1000, overhead: 100, minimum: 150 };
        assert_eq!(cost.wire_bytes(0), 150, "an empty message is a packet");
        assert_eq!(cost.wire_bytes(1), 150, "padded to the minimum");
        assert_eq!(cost.wire_bytes(50), 150);
        assert_eq!(cost.wire_bytes(51), 151);
        assert_eq!(cost.wire_bytes(1000), 1100, "exactly one packet");
        assert_eq!(cost.wire_bytes(1001), 1100 + 150);
        assert_eq!(cost.wire_bytes(2500), 1100 * 2 + 600);
    }

    #[test]
    fn ethernet_frames_have_the_size_of_the_standard() {
        let cost = PacketOverhead::UDP_OVER_ETHERNET;
        assert_eq!(cost.wire_bytes(cost.payload), 1538, "a full frame with preamble and gap");
        assert_eq!(cost.wire_bytes(1), 20 + 8 + 56 + 1 + 38);
    }

    #[test]
    fn the_mean_weighs_messages_by_their_share() {
        let cost = PacketOverhead { payload: 1000, overhead: 100, minimum: 0 };
        let sizes = SizeDistribution::from_shares(&[(100, 0.5), (2000, 0.5)]);
        assert_eq!(cost.mean_wire_bytes(&sizes), f64::midpoint(200.0, 2200.0));
    }
}
