//! Latencies of one run: a histogram in constant memory.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Values of one run and their percentiles, in constant memory, each exact to 0.1 %.
///
/// Intended for latencies in nanoseconds; other positive whole numbers work as well. Serialised as
/// pairs of a value and its count, smallest value first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "Vec<(u64, u64)>", from = "Vec<(u64, u64)>")]
pub struct Latencies {
    histogram: Histogram<u64>,
}

/// Percentiles of the values of one run, in the recorded unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    /// 50 % of the values are not greater.
    pub p50: u64,
    /// 99 % are not greater.
    pub p99: u64,
    /// 99.9 % are not greater.
    pub p999: u64,
    /// Number of values.
    pub samples: u64,
}

impl Latencies {
    /// Greatest value; larger values count as this: a minute in nanoseconds. Experiments time out
    /// long before.
    const GREATEST: u64 = 60_000_000_000;

    /// Exact digits of percentiles.
    const DIGITS: u8 = 3;

    /// Returns a histogram without values.
    #[must_use]
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, Self::GREATEST, Self::DIGITS);
        Self { histogram: histogram.expect("constant bounds that HdrHistogram accepts") }
    }

    /// Records a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.histogram.saturating_record(value);
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("the same bounds");
    }

    /// Returns the number of values.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    /// Returns the least value such that the share `fraction` of all values is not greater; 0 if
    /// there is none.
    #[must_use]
    pub fn quantile(&self, fraction: f64) -> u64 {
        self.histogram.value_at_quantile(fraction)
    }

    /// Returns their mean, exact to 0.1 %; 0 if there is none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.histogram.mean()
    }

    /// Returns the usual percentiles.
    #[must_use]
    pub fn percentiles(&self) -> Percentiles {
        Percentiles {
            p50: self.quantile(0.5),
            p99: self.quantile(0.99),
            p999: self.quantile(0.999),
            samples: self.len(),
        }
    }
}

impl From<Latencies> for Vec<(u64, u64)> {
    fn from(latencies: Latencies) -> Self {
        let values = latencies.histogram.iter_recorded();
        values.map(|value| (value.value_iterated_to(), value.count_at_value())).collect()
    }
}

impl From<Vec<(u64, u64)>> for Latencies {
    fn from(pairs: Vec<(u64, u64)>) -> Self {
        let mut latencies = Self::new();
        for (value, count) in pairs {
            latencies.histogram.saturating_record_n(value, count);
        }
        latencies
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_ramp_are_its_ranks() {
        let mut latencies = Latencies::new();
        (1..=1000).for_each(|value| latencies.record(value));
        assert_eq!(
            latencies.percentiles(),
            Percentiles { p50: 500, p99: 990, p999: 999, samples: 1000 }
        );
        assert_eq!((latencies.quantile(0.0), latencies.quantile(1.0)), (1, 1000));
        assert_eq!(latencies.mean(), 500.5);
    }

    #[test]
    fn large_values_are_exact_to_a_thousandth() {
        let mut latencies = Latencies::new();
        latencies.record(123_456_789);
        let found = latencies.quantile(0.5) as f64;
        assert!((found / 123_456_789.0 - 1.0).abs() < 1e-3, "{found}");
    }

    #[test]
    fn values_beyond_the_greatest_count_as_the_greatest() {
        let mut latencies = Latencies::new();
        latencies.record(u64::MAX);
        assert_eq!(latencies.len(), 1);
        let found = latencies.quantile(1.0) as f64 / Latencies::GREATEST as f64;
        assert!((1.0..1.3).contains(&found), "{found}");
    }

    #[test]
    fn no_values_have_percentiles_of_zero() {
        assert!(Latencies::new().is_empty());
        assert_eq!((Latencies::new().percentiles().p99, Latencies::new().mean()), (0, 0.0));
    }
}
