//! Poisson arrivals: the submission times of messages.

use std::time::Duration;

use rand::distr::Distribution;
use rand_distr::Exp1;
use rand_pcg::Pcg64;

/// Poisson arrivals: instants whose gaps are exponential and independent.
///
/// An endless iterator of times since the start of the experiment, which never decrease. A load
/// generator starts message `n` at instant `n` whether or not earlier messages are complete. If the
/// generator is late, the delay counts as latency of the message (no coordinated omission).
#[derive(Clone, Debug)]
pub struct Arrivals {
    /// Mean gap between two messages in nanoseconds.
    mean_gap: f64,
    /// The last arrival in nanoseconds. An `f64` represents these exactly for the first hundred
    /// days.
    last: f64,
    rng: Pcg64,
}

impl Arrivals {
    /// Returns arrivals of `per_second` messages a second on average.
    ///
    /// # Panics
    ///
    /// The rate is not a positive, finite number.
    #[must_use]
    pub fn at_rate(per_second: f64, rng: Pcg64) -> Self {
        assert!(per_second > 0.0 && per_second.is_finite(), "a rate of {per_second} messages/s");
        Self { mean_gap: 1e9 / per_second, last: 0.0, rng }
    }

    /// Returns arrivals that keep a link busy for the share `load` of the time.
    ///
    /// `mean_wire_bytes` is the average size of a message on the wire, headers included
    /// ([`crate::PacketOverhead::mean_wire_bytes`]). SIGCOMM 2018 defines load in the same way.
    ///
    /// # Panics
    ///
    /// One of the numbers is not positive and finite.
    #[must_use]
    pub fn at_load(load: f64, link_bits_per_second: f64, mean_wire_bytes: f64, rng: Pcg64) -> Self {
        assert!(mean_wire_bytes > 0.0, "messages of {mean_wire_bytes} bytes");
        Self::at_rate(load * link_bits_per_second / 8.0 / mean_wire_bytes, rng)
    }

    /// Returns the average number of messages a second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        1e9 / self.mean_gap
    }
}

impl Iterator for Arrivals {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let gap: f64 = Exp1.sample(&mut self.rng);
        self.last += gap * self.mean_gap;
        Some(Duration::from_nanos(self.last as u64))
    }
}
