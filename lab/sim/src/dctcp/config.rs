//! Parameters of DCTCP, with the sources of their values.
//!
//! The default is Linux 6 with `net.ipv4.tcp_congestion_control=dctcp` and no further changes,
//! except for the minimum retransmission timeout, which is taken from the DCTCP paper.

use apus_workload::time::{MILLISECOND, Nanos, Rate, SECOND};

/// Payload bytes of a full segment: an MTU of 1500 bytes less 20 (IPv4), 20 (TCP) and 12
/// (timestamps, which Linux sends by default).
pub const MSS: u32 = 1_500 - 20 - 20 - 12;

/// Wire bytes of a full segment, the unit of thresholds in packets: 1500 bytes and Ethernet's 38.
pub const FULL_FRAME: u64 = 1_538;

/// Parameters of DCTCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Payload bytes of a full segment, at least 1. Default: [`MSS`].
    pub mss: u32,
    /// Segments that a new or long idle connection may send at once, at least 1. 10: RFC 6928.
    pub initial_window: u32,
    /// Least retransmission timeout in addition to the round-trip time. 10 ms: the DCTCP paper,
    /// section 4 (200 ms in Linux unless a route has another value, `TCP_RTO_MIN`).
    pub min_rto: Nanos,
    /// Longest retransmission timeout after any number of doublings. 120 s: Linux, `TCP_RTO_MAX`.
    pub max_rto: Nanos,
    /// Least time of the tail loss probe and of the reordering timer in addition to the round-trip
    /// time. 2 ms: Linux, `TCP_TIMEOUT_MIN_US`.
    pub timer_floor: Nanos,
    /// Maximum time that an ACK waits for data or for a second segment. 40 ms: Linux,
    /// `TCP_DELACK_MIN`; see [`Config::ack_delay`].
    pub delayed_ack: Nanos,
    /// Whether a connection that was idle for a retransmission timeout restarts with the initial
    /// window. Yes: Linux, `tcp_slow_start_after_idle`; RFC 5681 section 4.1.
    pub slow_start_after_idle: bool,
    /// The estimate of the marked fraction moves by 1 / 2^this each window, 1 to 10. 4, which is g
    /// = 1/16: the DCTCP paper, section 4; Linux, `dctcp_shift_g`.
    pub gain_shift: u32,
    /// Initial estimate in 1024ths, at most 1024. 1024: Linux, `dctcp_alpha_on_init`; RFC 8257
    /// section 4.2.
    pub initial_alpha: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mss: MSS,
            initial_window: 10,
            min_rto: 10 * MILLISECOND,
            max_rto: 120 * SECOND,
            timer_floor: 2 * MILLISECOND,
            delayed_ack: 40 * MILLISECOND,
            slow_start_after_idle: true,
            gain_shift: 4,
            initial_alpha: 1_024,
        }
    }
}

impl Config {
    /// Returns the effective delay of an ACK. It is always less than the sender's timeout;
    /// otherwise each odd segment would be retransmitted needlessly. Source: Linux,
    /// `tcp_delack_max` (a millisecond less than the minimum retransmission timeout).
    #[must_use]
    pub const fn ack_delay(&self) -> Nanos {
        let half = self.min_rto / 2;
        let less = self.min_rto.saturating_sub(MILLISECOND);
        let sender_timeout = if less > half { less } else { half };
        if self.delayed_ack < sender_timeout { self.delayed_ack } else { sender_timeout }
    }
}

/// Returns the marking threshold K of the DCTCP paper in wire bytes: 20 full packets up to 1
/// Gbit/s, 65 at 10 Gbit/s (section 4), interpolated linearly between and beyond.
///
/// 65 packets make room for bursts of 30 to 40 packets, which a real host's segmentation offload
/// sends at once (section 3.5). Hosts in the simulator do not burst, so [`marking_bound`] is the
/// tighter choice here.
#[must_use]
pub const fn marking_threshold(rate: Rate) -> u64 {
    let mbps = rate.mbps();
    // 45 packets more for 9 Gbit/s more: 5 per Gbit/s.
    let packets = if mbps > 1_000 { 20_000 + (mbps - 1_000) * 5 } else { 20_000 };
    packets * FULL_FRAME / 1_000
}

/// Returns the least marking threshold that does not cost throughput, in wire bytes: K > C * RTT /
/// 7, where the round-trip time does not include queues. Source: the DCTCP paper, section 3.4 (13).
///
/// The analysis assumes smooth windows. The result is at least two full packets, because a port
/// that marks whenever a packet is queued marks even a single flow.
#[must_use]
pub const fn marking_bound(rate: Rate, round_trip: Nanos) -> u64 {
    let bound = rate.bytes(round_trip) / 7 + 1;
    if bound < 2 * FULL_FRAME { 2 * FULL_FRAME } else { bound }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gigabits(gbps: u64) -> Rate {
        Rate::from_mbps(gbps * 1_000).unwrap()
    }

    #[test]
    fn thresholds_are_the_papers() {
        assert_eq!(marking_threshold(Rate::from_mbps(100).unwrap()), 20 * FULL_FRAME);
        assert_eq!(marking_threshold(gigabits(1)), 20 * FULL_FRAME);
        assert_eq!(marking_threshold(gigabits(10)), 65 * FULL_FRAME);
        assert_eq!(marking_threshold(gigabits(40)), 215 * FULL_FRAME);
        // Section 3.4: 10 Gbit/s and 100 µs are 125 kB, and a seventh of that is about 12 packets.
        assert_eq!(marking_bound(gigabits(10), 100_000) / FULL_FRAME, 11);
        assert_eq!(marking_bound(gigabits(10), 7_740), 2 * FULL_FRAME);
    }

    /// An ACK is never delayed for as long as the sender's timeout.
    #[test]
    fn an_ack_waits_less_than_the_senders_timeout() {
        let delay = |min_rto| Config { min_rto, ..Config::default() }.ack_delay();
        assert_eq!(delay(200 * MILLISECOND), 40 * MILLISECOND);
        assert_eq!(delay(10 * MILLISECOND), 9 * MILLISECOND);
        assert_eq!(delay(MILLISECOND), MILLISECOND / 2);
        assert_eq!(delay(0), 0);
    }
}
