//! How long does a segment take to be acknowledged, and how long is its ACK waited for?
//!
//! Source: RFC 6298, with the floor below the variation as Linux has it: the timeout is the round-trip time
//! and at least [`Config::min_rto`] more.

use super::config::Config;
use apus_workload::time::Nanos;

/// Estimates of a connection's round-trip time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rtt {
    /// Smoothed time; 0 if nothing has been measured.
    smoothed: Nanos,
    /// Smoothed distance from it.
    variation: Nanos,
    /// Smallest sample, if there is one. Linux forgets it after five minutes, longer than a run.
    least: Option<Nanos>,
    /// How often the timeout has been doubled.
    backoff: u32,
}

impl Rtt {
    /// A segment that was sent once took so long (Karn's algorithm: RFC 6298 section 3).
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

    /// The smoothed time; 0 before the first sample.
    pub(super) const fn smoothed(&self) -> Nanos {
        self.smoothed
    }

    /// The smallest sample; 0 before the first.
    pub(super) fn least(&self) -> Nanos {
        self.least.unwrap_or(0)
    }

    /// The retransmission timeout. Before the first sample that of a fast path, not the second that RFC
    /// 6298 prescribes: the connection was established, so that its handshake has been measured.
    pub(super) fn timeout(&self, config: &Config) -> Nanos {
        let timeout = self.smoothed + (4 * self.variation).max(config.min_rto);
        timeout.saturating_mul(1 << self.backoff.min(32)).min(config.max_rto).max(1)
    }

    /// The timeout has passed in vain (RFC 6298 section 5.5).
    pub(super) const fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// New data was acknowledged. Timestamps give Linux a sample even for what was sent twice, and a sample
    /// ends the doubling (RFC 6298 section 5.7 and its note).
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
