//! The spread of a figure over the runs: median, minimum, maximum.

use serde::Serialize;

/// A figure over the runs of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Median; the mean of the middle two for an even number of runs.
    pub median: f64,
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of one value per run.
    ///
    /// # Panics
    ///
    /// If there is no run, or a value is not a number.
    #[must_use]
    pub fn over(runs: &[f64]) -> Self {
        assert!(!runs.is_empty(), "a spread over no runs");
        assert!(runs.iter().all(|value| !value.is_nan()), "not a number: {runs:?}");
        let mut sorted = runs.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = if sorted.len().is_multiple_of(2) {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        } else {
            sorted[middle]
        };
        Self { median, min: sorted[0], max: sorted[sorted.len() - 1] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_odd_number_is_the_middle_one() {
        let spread = Spread::over(&[5.0, 1.0, 3.0]);
        assert_eq!(spread, Spread { median: 3.0, min: 1.0, max: 5.0 });
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        let spread = Spread::over(&[4.0, 1.0, 2.0, 8.0]);
        assert_eq!(spread, Spread { median: 3.0, min: 1.0, max: 8.0 });
    }

    #[test]
    fn one_run_is_its_own_spread() {
        assert_eq!(Spread::over(&[7.0]), Spread { median: 7.0, min: 7.0, max: 7.0 });
    }

    #[test]
    #[should_panic(expected = "no runs")]
    fn no_run_is_an_error_of_the_caller() {
        let _ = Spread::over(&[]);
    }
}
