//! The difference of two samples: Student's t.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::sample::Sample;

/// Difference of the means of two sets of runs, with Student's t interval.
///
/// As in ministat, the standard deviations are pooled, and no difference is proven while the
/// interval contains 0. Source: FreeBSD's `ministat(1)`; reference, section G.
///
/// ministat has a table of Student's t, which is computed here. The results agree with three
/// exceptions: ministat requires three runs although two suffice; from 101 degrees of freedom it
/// uses the normal distribution; and its column for 99.5 % has the values of 99.8 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Mean of the second set less mean of the first.
    pub mean: f64,
    /// Half the width of the confidence interval around `mean`.
    pub half_width: f64,
    /// Mean of the first set; percentages refer to it.
    pub base: f64,
    /// Pooled standard deviation of both sets, each around its own mean.
    pub pooled: f64,
    /// The confidence: between 0 and 1.
    pub confidence: f64,
}

impl Difference {
    /// Default confidence for a proven difference. Source: ministat's default.
    pub const CONFIDENCE: f64 = 0.95;

    /// Returns the difference of `after` from `before`, with a confidence between 0 and 1 such as
    /// [`Self::CONFIDENCE`]. `None` if either has fewer than two runs, since their variation is
    /// unknown.
    ///
    /// # Panics
    ///
    /// If the confidence is not between 0 and 1, or a value is not a number.
    #[must_use]
    pub fn between(before: &[f64], after: &[f64], confidence: f64) -> Option<Self> {
        if before.len() < 2 || after.len() < 2 {
            return None;
        }
        Self::of(&Sample::of(before), &Sample::of(after), confidence)
    }

    /// Returns [`Self::between`] for summarised sets.
    ///
    /// # Panics
    ///
    /// If the confidence is not between 0 and 1.
    #[must_use]
    pub fn of(before: &Sample, after: &Sample, confidence: f64) -> Option<Self> {
        assert!(confidence > 0.0 && confidence < 1.0, "a confidence of {confidence}");
        if before.count < 2 || after.count < 2 {
            return None;
        }
        let squares = |sample: &Sample| sample.deviation.powi(2) * sample.freedom();
        let freedom = before.freedom() + after.freedom();
        let pooled = ((squares(before) + squares(after)) / freedom).sqrt();
        let student = StudentsT::new(0.0, 1.0, freedom).expect("at least two degrees of freedom");
        let t = student.inverse_cdf(f64::midpoint(1.0, confidence));
        let root = (1.0 / before.count as f64 + 1.0 / after.count as f64).sqrt();
        Some(Self {
            mean: after.mean - before.mean,
            half_width: t * pooled * root,
            base: before.mean,
            pooled,
            confidence,
        })
    }

    /// Returns whether the interval excludes 0.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.mean.abs() > self.half_width
    }

    /// Returns the difference and half the width of its interval in per cent of the first set's
    /// mean; `None` if the mean is 0.
    #[must_use]
    pub fn percent(&self) -> Option<(f64, f64)> {
        let share = |value: f64| 100.0 * value / self.base;
        (self.base != 0.0).then(|| (share(self.mean), share(self.half_width).abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The example of ministat's manual page: average 300, deviation 238.04761; average 540,
    // deviation 299.08193. "No difference proven at 95.0% confidence".
    const IGUANA: [f64; 7] = [50.0, 200.0, 150.0, 400.0, 750.0, 400.0, 150.0];
    const CHAMELEON: [f64; 5] = [150.0, 400.0, 720.0, 500.0, 930.0];

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3 * b.abs()
    }

    #[test]
    fn the_example_of_ministat_proves_nothing() {
        let deviation = |values: &[f64]| Sample::of(values).deviation;
        assert!(near(deviation(&IGUANA), 238.04761) && near(deviation(&CHAMELEON), 299.08193));

        let difference = Difference::between(&IGUANA, &CHAMELEON, 0.95).unwrap();
        assert!(near(difference.mean, 240.0));
        // Pooled deviation 264.159, Student's t for 10 degrees of freedom 2.228:
        // 2.228 * 264.159 * sqrt(1/7 + 1/5) = 344.64.
        assert!(near(difference.half_width, 344.64), "{difference:?}");
        assert!(!difference.is_proven());
    }

    #[test]
    fn less_confidence_proves_the_example() {
        // As in the manual page: 240 +/- 212.215, 80% +/- 70.7384%, pooled s = 264.159.
        let difference = Difference::between(&IGUANA, &CHAMELEON, 0.80).unwrap();
        assert!(near(difference.half_width, 212.215), "{difference:?}");
        assert!(near(difference.pooled, 264.159), "{difference:?}");
        let (mean, half_width) = difference.percent().unwrap();
        assert!(near(mean, 80.0) && near(half_width, 70.7384), "{difference:?}");
        assert!(difference.is_proven());
    }

    /// Student's t from tables, two-sided: degrees of freedom, confidence, value.
    const TABLE: [(usize, f64, f64); 12] = [
        (2, 0.80, 1.886),
        (2, 0.95, 4.303),
        (4, 0.90, 2.132),
        (4, 0.95, 2.776),
        (4, 0.99, 4.604),
        (4, 0.995, 5.598),
        (8, 0.95, 2.306),
        (8, 0.98, 2.896),
        (18, 0.99, 2.878),
        (30, 0.95, 2.042),
        (60, 0.98, 2.390),
        (100, 0.95, 1.984),
    ];

    #[test]
    fn half_widths_agree_with_the_table() {
        for (freedom, confidence, t) in TABLE {
            // Two sets of n values with a known pooled deviation: half of the values are 1 below
            // the mean, half 1 above, so the squares add up to n in each set.
            let n = freedom / 2 + 1;
            let mut set: Vec<f64> = (0..n).map(|at| if at % 2 == 0 { -1.0 } else { 1.0 }).collect();
            if n % 2 == 1 {
                set[n - 1] = 0.0;
            }
            let squares = 2.0 * (n - n % 2) as f64;
            let error = (squares / freedom as f64).sqrt() * (2.0 / n as f64).sqrt();
            let difference = Difference::between(&set, &set, confidence).unwrap();
            let found = difference.half_width / error;
            assert!((found - t).abs() < 0.000_51, "{found} for {freedom} at {confidence}, not {t}");
        }
    }

    #[test]
    fn runs_without_variation_prove_any_difference() {
        let difference = Difference::between(&[1.0, 1.0], &[2.0, 2.0], 0.95).unwrap();
        assert!(difference.is_proven());
        let none = Difference::between(&[1.0, 1.0], &[1.0, 1.0], 0.95).unwrap();
        assert!(!none.is_proven());
    }

    #[test]
    fn one_run_shows_no_variation() {
        assert_eq!(Difference::between(&[1.0], &[2.0, 3.0], 0.95), None);
        assert_eq!(Difference::between(&[], &[2.0, 3.0], 0.95), None);
    }

    #[test]
    fn zero_has_no_percentages() {
        let difference = Difference::between(&[-1.0, 1.0], &[2.0, 3.0], 0.95).unwrap();
        assert_eq!((difference.mean, difference.percent()), (2.5, None));
    }
}
