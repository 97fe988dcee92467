//! Do two sets of runs differ?

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Difference of the means of two sets of runs, with Student's t interval.
///
/// The convention of ministat: the standard deviations are pooled, and no difference is proven while
/// the interval contains 0. Source: FreeBSD's `ministat(1)`; reference, section G.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Mean of the second set less mean of the first one.
    pub mean: f64,
    /// The true difference is within `mean` plus or minus this, with the confidence asked for.
    pub half_width: f64,
}

impl Difference {
    /// What `after` differs from `before`, with a confidence between 0 and 1 (0.95, say). `None` if
    /// either has fewer than two runs: nothing is known about their variation then.
    ///
    /// # Panics
    ///
    /// If the confidence is not between 0 and 1.
    #[must_use]
    pub fn between(before: &[f64], after: &[f64], confidence: f64) -> Option<Self> {
        assert!(confidence > 0.0 && confidence < 1.0, "a confidence of {confidence}");
        if before.len() < 2 || after.len() < 2 {
            return None;
        }
        let (n, m) = (before.len() as f64, after.len() as f64);
        let freedom = n + m - 2.0;
        let pooled = (squares(before) + squares(after)) / freedom;
        let student = StudentsT::new(0.0, 1.0, freedom).expect("at least two degrees of freedom");
        let t = student.inverse_cdf(f64::midpoint(1.0, confidence));
        Some(Self {
            mean: mean(after) - mean(before),
            half_width: t * (pooled * (1.0 / n + 1.0 / m)).sqrt(),
        })
    }

    /// Whether the interval excludes 0.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.mean.abs() > self.half_width
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sum of the squared distances from the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
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
        let deviation = |values: &[f64]| (squares(values) / (values.len() as f64 - 1.0)).sqrt();
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
        // Student's t for 10 degrees of freedom at 80 %: 1.372; 1.372 * 154.68 = 212.2.
        let difference = Difference::between(&IGUANA, &CHAMELEON, 0.80).unwrap();
        assert!(near(difference.half_width, 212.2), "{difference:?}");
        assert!(difference.is_proven());
    }

    #[test]
    fn runs_without_variation_prove_any_difference() {
        let difference = Difference::between(&[1.0, 1.0], &[2.0, 2.0], 0.95).unwrap();
        assert!(difference.is_proven());
        let none = Difference::between(&[1.0, 1.0], &[1.0, 1.0], 0.95).unwrap();
        assert!(!none.is_proven());
    }

    #[test]
    fn one_run_says_nothing_about_variation() {
        assert_eq!(Difference::between(&[1.0], &[2.0, 3.0], 0.95), None);
    }
}
