//! Distribution of durations.

use serde::ser::{Serialize, SerializeMap, Serializer};

/// Sorted durations in nanoseconds. Negative values are smaller than the uncertainty of the hosts'
/// clocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    sorted: Vec<i64>,
}

/// Percentiles in reports.
pub const PERCENTILES: [f64; 8] = [0.0, 10.0, 30.0, 50.0, 70.0, 90.0, 99.0, 100.0];

impl Distribution {
    /// Returns the number of durations.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.sorted.len()
    }

    /// Returns the mean in nanoseconds; 0 if the distribution is empty.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum() as f64 / self.count().max(1) as f64
    }

    /// Returns the sum in nanoseconds.
    #[must_use]
    pub fn sum(&self) -> i128 {
        self.sorted.iter().map(|nanos| i128::from(*nanos)).sum()
    }

    /// Returns a percentile by nearest rank: the smallest value that at least `percent` of all
    /// values do not exceed. 0 returns the minimum, 100 the maximum. Returns 0 if the distribution
    /// is empty.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> i64 {
        let rank = (percent / 100.0 * self.count() as f64).ceil() as usize;
        self.sorted.get(rank.clamp(1, self.count().max(1)) - 1).copied().unwrap_or_default()
    }

    /// Returns the median.
    #[must_use]
    pub fn median(&self) -> i64 {
        self.percentile(50.0)
    }

    /// Returns the values in ascending order.
    #[must_use]
    pub fn values(&self) -> &[i64] {
        &self.sorted
    }
}

impl FromIterator<i64> for Distribution {
    fn from_iter<I: IntoIterator<Item = i64>>(nanos: I) -> Self {
        let mut sorted: Vec<i64> = nanos.into_iter().collect();
        sorted.sort_unstable();
        Self { sorted }
    }
}

/// Converts nanoseconds to microseconds for JSON, rounded to three decimal places.
#[must_use]
pub fn micros(nanos: f64) -> f64 {
    nanos.round() / 1e3
}

/// Serializes as `{"count": 3, "mean_us": 1.5, "p0_us": 1, …, "p100_us": 2}`; an empty distribution
/// contains only the count.
impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("count", &self.count())?;
        if self.count() > 0 {
            map.serialize_entry("mean_us", &micros(self.mean()))?;
            for percent in PERCENTILES {
                let nanos = self.percentile(percent) as f64;
                map.serialize_entry(&format!("p{percent}_us"), &micros(nanos))?;
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_of_the_distribution() {
        let hundred: Distribution = (1..=100).rev().map(|value| value * 1_000).collect();
        let percentiles = PERCENTILES.map(|percent| hundred.percentile(percent) / 1_000);
        assert_eq!(percentiles, [1, 10, 30, 50, 70, 90, 99, 100]);
        assert_eq!((hundred.mean(), hundred.sum()), (50_500.0, 5_050_000));
    }

    #[test]
    fn one_value_and_none() {
        let one = Distribution::from_iter([-7]);
        assert_eq!(PERCENTILES.map(|percent| one.percentile(percent)), [-7; 8]);
        let none = Distribution::default();
        assert_eq!((none.percentile(50.0), none.mean(), none.count()), (0, 0.0, 0));
    }

    #[test]
    fn json_has_microseconds() {
        let json = serde_json::to_value(Distribution::from_iter([1_000, 2_001])).unwrap();
        assert_eq!((&json["count"], &json["mean_us"]), (&2.into(), &1.501.into()));
        assert_eq!((&json["p0_us"], &json["p100_us"]), (&1.0.into(), &2.001.into()));
        assert_eq!(serde_json::to_string(&Distribution::default()).unwrap(), r#"{"count":0}"#);
    }
}
