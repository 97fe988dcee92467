//! The round-trip time to a peer.
//!
//! Two figures for two uses. The *minimum* over the last ten to twenty seconds is the time on an
//! idle network: it sets the amount of unscheduled bytes. The *smoothed* time with its variation
//! includes queues: it sets how long silence is normal (TIME-11). Source of the smoothing: RFC 6298
//! section 2.

use crate::time::Instant;

/// The minimum is taken over this time and the same time before it.
const MIN_WINDOW: u64 = 10_000_000_000;

/// A message's first GRANT waits for shorter messages, so its delay may not reflect the network: a
/// sample counts as at most this many times the minimum. Chosen by us: longer queues than that are
/// drained before missing bytes are requested. Without a bound, losses that are not requested delay
/// GRANTs, which lengthens the RTO, which delays requests for losses.
const GRANT_FACTOR: u64 = 4;

/// Estimates of a peer's round-trip time, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Rtt {
    /// Smoothed time; 0 without samples.
    smoothed: u64,
    /// Smoothed distance from it.
    variation: u64,
    /// Smallest sample of this window and of the one before.
    min: [Option<u64>; 2],
    window_start: Instant,
}

impl Rtt {
    /// A sample that may include the time for which a message waits for its first GRANT.
    pub(crate) fn sample_grant(&mut self, now: Instant, nanos: u64) {
        self.sample_upper_bound(now, nanos);
        let most = self.min().map_or(nanos, |min| min.saturating_mul(GRANT_FACTOR));
        self.sample(now, nanos.min(most));
    }

    /// A sample of the network and of the peer's queues: the peer answers at once (NEED_ACK or
    /// RESEND to BUSY), or a response has overtaken the answer to a RESEND.
    pub(crate) fn sample(&mut self, now: Instant, nanos: u64) {
        self.sample_upper_bound(now, nanos);
        if self.smoothed == 0 {
            self.smoothed = nanos.max(1);
            self.variation = nanos / 2;
        } else {
            self.variation = (3 * self.variation + self.smoothed.abs_diff(nanos)) / 4;
            self.smoothed = ((7 * self.smoothed + nanos) / 8).max(1);
        }
    }

    /// Samples the time from a request to its response. It includes the peer's own work: it counts
    /// if it is below the estimate, so that the estimate falls when a queue has ended.
    pub(crate) fn sample_response(&mut self, now: Instant, nanos: u64) {
        if nanos < self.smoothed {
            self.sample(now, nanos);
        } else {
            self.sample_upper_bound(now, nanos);
        }
    }

    /// A sample that includes the peer's own work (request to response): it counts for the minimum
    /// only.
    fn sample_upper_bound(&mut self, now: Instant, nanos: u64) {
        if now.since(self.window_start) >= MIN_WINDOW {
            self.min = [None, self.min[0]];
            self.window_start = now;
        }
        self.min[0] = Some(self.min[0].map_or(nanos, |min| min.min(nanos)));
    }

    /// The smallest recent time, if any has been measured.
    pub(crate) fn min(&self) -> Option<u64> {
        match self.min {
            [Some(now), Some(before)] => Some(now.min(before)),
            [now, before] => now.or(before),
        }
    }

    /// Returns the RTO in nanoseconds (RFC 6298, section 2): at least `floor`, and beyond that at
    /// most `most`.
    pub(crate) fn rto(&self, floor: u64, most: u64) -> u64 {
        (self.smoothed + 4 * self.variation).min(most).max(floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requirement TIME-11.
    #[test]
    fn the_minimum_forgets_after_two_windows() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.min(), None);
        rtt.sample_upper_bound(Instant::from_nanos(1), 10);
        rtt.sample_upper_bound(Instant::from_nanos(2), 30);
        assert_eq!(rtt.min(), Some(10));
        rtt.sample_upper_bound(Instant::from_nanos(MIN_WINDOW), 20);
        assert_eq!(rtt.min(), Some(10), "the window before still counts");
        rtt.sample_upper_bound(Instant::from_nanos(2 * MIN_WINDOW), 25);
        assert_eq!(rtt.min(), Some(20));
    }

    const MOST: u64 = 250_000_000;

    /// Found by the swarm: 500 requests wait for GRANTs, each waits longer than the one before, and
    /// lost bytes are never requested.
    #[test]
    fn waiting_for_a_grant_is_no_round_trip() {
        let mut rtt = Rtt::default();
        rtt.sample_grant(Instant::ZERO, 100_000);
        for _ in 0..50 {
            rtt.sample_grant(Instant::ZERO, 9_000_000_000);
        }
        assert!(rtt.rto(5_000, MOST) < 1_000_000, "{rtt:?}");
        rtt.sample(Instant::ZERO, 9_000_000_000);
        assert_eq!(rtt.rto(5_000, MOST), MOST, "three RESENDs fit into the timeout");
    }

    #[test]
    fn a_queue_that_has_ended_is_forgotten() {
        let mut rtt = Rtt::default();
        rtt.sample(Instant::ZERO, 100_000);
        for _ in 0..20 {
            rtt.sample(Instant::ZERO, 50_000_000);
        }
        assert!(rtt.rto(5_000_000, MOST) > 45_000_000, "{rtt:?}");
        rtt.sample_response(Instant::ZERO, 900_000_000);
        assert!(rtt.rto(5_000_000, MOST) < 150_000_000, "a slow method is no queue: {rtt:?}");
        for _ in 0..100 {
            rtt.sample_response(Instant::ZERO, 300_000);
        }
        assert_eq!(rtt.rto(5_000_000, MOST), 5_000_000, "{rtt:?}");
    }

    #[test]
    fn the_rto_follows_the_queues_and_has_a_floor() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.rto(5_000, MOST), 5_000);
        rtt.sample(Instant::ZERO, 100_000);
        assert_eq!(rtt.rto(5_000, MOST), 300_000);
        for _ in 0..50 {
            rtt.sample(Instant::ZERO, 100_000);
        }
        assert!((100_000..110_000).contains(&rtt.rto(5_000, MOST)), "steady");
        rtt.sample_upper_bound(Instant::ZERO, 9_000_000);
        assert!(rtt.rto(5_000, MOST) < 110_000, "the peer's own work does not count");
    }
}
