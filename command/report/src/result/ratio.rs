//! Ratios of two contenders, taken inside each run.

use serde::Serialize;

use super::number::rounded;
use crate::stats::{Difference, Spread};

/// The quotient of two contenders' figures, over the runs.
///
/// The quotient is computed within each run, with the same state of the machine for both
/// contenders, and then summarised over the runs: a slow-down of a whole run cancels out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Median of the quotients.
    pub median: f64,
    /// Least quotient.
    pub min: f64,
    /// Greatest quotient.
    pub max: f64,
    /// Whether the two figures differ at 95 % confidence ([`Difference`]); absent with one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proven: Option<bool>,
}

impl Ratio {
    /// Returns the ratio of two contenders' figures, each with the number of its run, over their
    /// common runs. `None` if there is no common run, or a quotient is undefined.
    #[must_use]
    pub fn paired(dividend: &[(usize, f64)], divisor: &[(usize, f64)]) -> Option<Self> {
        let same_run = |run| divisor.iter().find(|(other, _)| *other == run);
        let both = dividend.iter().filter_map(|(run, value)| Some((*value, same_run(*run)?.1)));
        let (dividend, divisor): (Vec<f64>, Vec<f64>) = both.unzip();
        Self::over(&dividend, &divisor)
    }

    /// Returns the ratio of two contenders' figures, in the order of the runs. `None` if there is
    /// no run, or a quotient is undefined because of a figure of 0.
    ///
    /// # Panics
    ///
    /// If the numbers of runs differ.
    #[must_use]
    pub fn over(dividend: &[f64], divisor: &[f64]) -> Option<Self> {
        assert_eq!(dividend.len(), divisor.len(), "figures of different runs");
        let quotients: Vec<f64> = dividend.iter().zip(divisor).map(|(a, b)| a / b).collect();
        if quotients.is_empty() || quotients.iter().any(|quotient| !quotient.is_finite()) {
            return None;
        }
        let spread = Spread::over(&quotients);
        Some(Self {
            median: rounded(spread.median),
            min: rounded(spread.min),
            max: rounded(spread.max),
            proven: Difference::between(divisor, dividend, Difference::CONFIDENCE)
                .map(|difference| difference.is_proven()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_computed_within_each_run() {
        // The machine was ten times slower in the second run; the ratio is the same.
        let ratio = Ratio::over(&[2.0, 20.0, 3.0], &[1.0, 10.0, 1.0]).unwrap();
        assert_eq!((ratio.median, ratio.min, ratio.max), (2.0, 2.0, 3.0));
        assert_eq!(ratio.proven, Some(false), "the runs vary more than the contenders differ");
    }

    #[test]
    fn steady_runs_prove_a_difference() {
        let ratio = Ratio::over(&[2.0, 2.1, 2.0], &[1.0, 1.1, 1.0]).unwrap();
        assert_eq!(ratio.proven, Some(true));
        assert_eq!(Ratio::over(&[2.0], &[1.0]).unwrap().proven, None, "one run proves nothing");
    }

    #[test]
    fn a_run_that_one_contender_lost_is_left_out() {
        let (lost_one, all) = ([(1, 2.0), (3, 9.0)], [(1, 1.0), (2, 5.0), (3, 3.0)]);
        let ratio = Ratio::paired(&lost_one, &all).unwrap();
        assert_eq!((ratio.min, ratio.max), (2.0, 3.0));
        assert_eq!(Ratio::paired(&lost_one, &[(2, 1.0)]), None);
    }

    #[test]
    fn a_divisor_of_zero_has_no_ratio() {
        assert_eq!(Ratio::over(&[1.0], &[0.0]), None);
        assert_eq!(Ratio::over(&[], &[]), None);
    }
}
