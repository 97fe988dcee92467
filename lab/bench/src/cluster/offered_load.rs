//! The offered load: request rate for a given share of busy link time.

use apus_workload::{PacketOverhead, SizeDistribution};

/// Header bytes of an apus packet: IPv4 20, UDP 8, and 56 of a DATA packet.
const HEADERS: u32 = 20 + 8 + 56;

/// Returns how apus cuts messages into packets.
pub(super) const fn packets(mtu: u32) -> PacketOverhead {
    PacketOverhead::ethernet(mtu, HEADERS)
}

/// Returns the request rate per node, per second, that loads every link to the share `load`,
/// headers included.
///
/// Each node sends requests and, as a server, their echoes: a link carries every message twice in
/// each direction on average. Headers are counted as for apus; TCP's headers are shorter, so its
/// links are slightly less busy with the same messages.
pub(super) fn rate(load: f64, mbps: u64, mtu: u32, sizes: &SizeDistribution) -> f64 {
    let bytes = packets(mtu).mean_wire_bytes(sizes);
    load * mbps as f64 * 1e6 / 8.0 / (2.0 * bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_carries_requests_and_replies() {
        // A full frame in each direction: 2 x 1538 bytes.
        let sizes = SizeDistribution::fixed(1500 - HEADERS);
        let rate = rate(0.5, 1000, 1500, &sizes);
        assert!((rate - 0.5 * 1e9 / 8.0 / (2.0 * 1538.0)).abs() < 1e-6, "{rate}");
    }
}
