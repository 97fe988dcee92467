//! What do many durations have in common?

use serde::ser::{Serialize, SerializeMap, Serializer};

/// Durations in nanoseconds, sorted. Below 0 where two hosts' clocks are known less well than the duration is long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    sorted: Vec<i64>,
}

/// The percentiles of reports.
pub const PERCENTILES: [f64; 8] = [0.0, 10.0, 30.0, 50.0, 70.0, 90.0, 99.0, 100.0];

impl Distribution {
    /// How many.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.sorted.len()
    }

    /// Mean in nanoseconds; 0 of nothing.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum() as f64 / self.count().max(1) as f64
    }

    /// All together, in nanoseconds.
    #[must_use]
    pub fn sum(&self) -> i128 {
        self.sorted.iter().map(|nanos| i128::from(*nanos)).sum()
    }

    /// The smallest value that `percent` of all do not exceed (nearest rank): 0 gives the least, 100 the greatest; 0 of
    /// nothing.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> i64 {
        let rank = (percent / 100.0 * self.count() as f64).ceil() as usize;
        self.sorted.get(rank.clamp(1, self.count().max(1)) - 1).copied().unwrap_or_default()
    }

    /// Percentile 50.
    #[must_use]
    pub fn median(&self) -> i64 {
        self.percentile(50.0)
    }

    /// The values, ascending.
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

/// Microseconds of that many nanoseconds, for JSON: three digits behind the point are all there are.
#[must_use]
pub fn micros(nanos: f64) -> f64 {
    nanos.round() / 1e3
}

/// `{"count": 3, "mean_us": 1.5, "p0_us": 1, …, "p100_us": 2}`; without durations only the count.
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
    fn percentiles_are_values_that_were_there() {
        let hundred: Distribution = (1..=100).rev().map(|value| value * 1_000).collect();
        let found = PERCENTILES.map(|percent| hundred.percentile(percent) / 1_000);
        assert_eq!(found, [1, 10, 30, 50, 70, 90, 99, 100]);
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
    fn machines_read_microseconds() {
        let json = serde_json::to_value(Distribution::from_iter([1_000, 2_001])).unwrap();
        assert_eq!((&json["count"], &json["mean_us"]), (&2.into(), &1.501.into()));
        assert_eq!((&json["p0_us"], &json["p100_us"]), (&1.0.into(), &2.001.into()));
        assert_eq!(serde_json::to_string(&Distribution::default()).unwrap(), r#"{"count":0}"#);
    }
}
