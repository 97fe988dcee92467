//! Round-trip time estimate and retransmission timeout.
//!
//! Source: RFC 6298, with Linux's floor for the variation: the timeout is the round-trip time and
//! at least [`Config::min_rto`] more.

use super::config::Config;
use apus_workload::time::Nanos;

/// Estimates of a connection's round-trip time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rtt {
    /// Smoothed time; 0 before the first sample.
    smoothed: Nanos,
    /// Smoothed deviation.
    variation: Nanos,
    /// Smallest sample, if any. Linux discards it after five minutes, which is longer than a run.
    least: Option<Nanos>,
    /// Number of doublings of the timeout.
    backoff: u32,
}

impl Rtt {
    /// Records the time of a segment that was sent once (Karn's algorithm: RFC 6298 section 3).
    pub(super) fn sample(&mut self, nanos: Nanos) {
        self.least = Some(self.least.map_or(nanos, |least| least.min(nanos)));
        if self.smoothed == 0 {
            self.smoothed = nanos.max(1);
            self.variation = nanos / 2;
        } else {
            self.variation = (3 * self.variation + self.smoothed.abs_diff(nanos)) / 4;
            self.smoothed = ((7 * self.smoothed + nanos) / 8).max(1);
        }
    }

    /// Returns the smoothed time; 0 before the first sample.
    pub(super) const fn smoothed(&self) -> Nanos {
        self.smoothed
    }

    /// Returns the smallest sample; 0 before the first one.
    pub(super) fn least(&self) -> Nanos {
        self.least.unwrap_or(0)
    }

    /// Returns the retransmission timeout. Before the first sample it is the timeout of a fast
    /// path, not the second that RFC 6298 prescribes: the connection is established, so its
    /// handshake has been measured.
    pub(super) fn timeout(&self, config: &Config) -> Nanos {
        let timeout = self.smoothed + (4 * self.variation).max(config.min_rto);
        timeout.saturating_mul(1 << self.backoff.min(32)).min(config.max_rto).max(1)
    }

    /// Doubles the timeout after it has expired (RFC 6298 section 5.5).
    pub(super) const fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Ends the doubling after new data was acknowledged. With timestamps Linux has a sample even
    /// for retransmitted data, and a sample ends the doubling (RFC 6298 section 5.7 and its note).
    pub(super) const fn progress(&mut self) {
        self.backoff = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_workload::time::MILLISECOND;

    #[test]
    fn the_timeout_is_a_floor_above_the_round_trip_and_doubles() {
        let config = Config::default();
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout(&config), 10 * MILLISECOND);
        rtt.sample(8_000);
        assert_eq!(rtt.timeout(&config), 10 * MILLISECOND + 8_000);
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.timeout(&config), 4 * (10 * MILLISECOND + 8_000));
        rtt.progress();
        assert_eq!(rtt.timeout(&config), 10 * MILLISECOND + 8_000);
        for _ in 0..100 {
            rtt.back_off();
        }
        assert_eq!(rtt.timeout(&config), config.max_rto);
    }

    /// RFC 6298 section 2.3: alpha 1/8, beta 1/4.
    #[test]
    fn samples_are_smoothed() {
        let config = Config { min_rto: 0, ..Config::default() };
        let mut rtt = Rtt::default();
        rtt.sample(800);
        assert_eq!(rtt.timeout(&config), 800 + 4 * 400);
        rtt.sample(1_600);
        assert_eq!(rtt.smoothed(), 900);
        assert_eq!(rtt.timeout(&config), 900 + 4 * 500);
        assert_eq!(rtt.least(), 800);
    }
}
