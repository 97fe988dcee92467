//! A sample: mean and deviation of a figure over the runs.

use serde::Serialize;

use super::spread::Spread;

/// A figure over the runs of an experiment, as summarised by ministat.
///
/// A [`Spread`] is for people; [`Difference`](super::Difference) is computed from this. Source:
/// FreeBSD's `ministat(1)`, except for the median of an even number of runs: here it is the mean of
/// the middle two, there the upper one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Number of runs.
    pub count: usize,
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
    /// Median.
    pub median: f64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation, estimated from the sample (divided by one less than the number of runs);
    /// 0 for one run, whose variation is unknown.
    pub deviation: f64,
}

impl Sample {
    /// Returns the sample of one value per run.
    ///
    /// # Panics
    ///
    /// If there is no run, or a value is not a number.
    #[must_use]
    pub fn of(runs: &[f64]) -> Self {
        let Spread { median, min, max } = Spread::over(runs);
        let count = runs.len();
        let mean = runs.iter().sum::<f64>() / count as f64;
        let squares: f64 = runs.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if count > 1 { (squares / (count as f64 - 1.0)).sqrt() } else { 0.0 };
        Self { count, min, max, median, mean, deviation }
    }

    /// Returns the degrees of freedom of the deviation.
    pub(super) fn freedom(&self) -> f64 {
        self.count as f64 - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_estimated_from_the_sample() {
        // Squares of the distances from 5: 9 + 1 + 1 + 1 + 0 + 0 + 4 + 16 = 32; 32 / 7 = 4.571.
        let sample = Sample::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((sample.count, sample.mean, sample.median), (8, 5.0, 4.5));
        assert_eq!((sample.min, sample.max), (2.0, 9.0));
        assert!((sample.deviation - (32.0f64 / 7.0).sqrt()).abs() < 1e-12, "{sample:?}");
    }

    #[test]
    fn one_run_has_no_deviation() {
        let sample = Sample::of(&[3.0]);
        assert_eq!((sample.mean, sample.deviation), (3.0, 0.0));
    }
}
