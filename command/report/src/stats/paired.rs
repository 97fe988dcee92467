//! The ratio of two figures that were measured in turn.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Geometric mean of the quotients of pairs, with Student's t interval of their logarithms.
///
/// A slow-down of a whole round cancels out in each pair; [`Difference`](super::Difference) would
/// count it as variation. The textbook method for paired samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Paired {
    /// Quotient of the second figure and the first.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Number of pairs.
    pub pairs: usize,
}

impl Paired {
    /// Returns the ratio of figures of the same rounds. `None` for fewer than two rounds, or if a
    /// figure is not above 0.
    ///
    /// # Panics
    ///
    /// If the numbers of rounds differ, or the confidence is not between 0 and 1.
    #[must_use]
    pub fn of(before: &[f64], after: &[f64], confidence: f64) -> Option<Self> {
        assert_eq!(before.len(), after.len(), "figures of different rounds");
        assert!(confidence > 0.0 && confidence < 1.0, "a confidence of {confidence}");
        let good = |value: &f64| value.is_finite() && *value > 0.0;
        if before.len() < 2 || !before.iter().chain(after).all(good) {
            return None;
        }
        let count = before.len() as f64;
        let logs: Vec<f64> =
            before.iter().zip(after).map(|(before, after)| (after / before).ln()).collect();
        let mean = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        let student =
            StudentsT::new(0.0, 1.0, count - 1.0).expect("at least one degree of freedom");
        let half = student.inverse_cdf(f64::midpoint(1.0, confidence)) * error;
        Some(Self {
            ratio: mean.exp(),
            low: (mean - half).exp(),
            high: (mean + half).exp(),
            pairs: before.len(),
        })
    }

    /// Returns whether the interval excludes 1.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_round_cancels_out() {
        let paired = Paired::of(&[1.0, 10.0, 100.0], &[2.0, 20.0, 200.0], 0.95).unwrap();
        assert!((paired.ratio - 2.0).abs() < 1e-9 && paired.high - paired.low < 1e-9);
        assert!(paired.is_proven());
    }

    #[test]
    fn the_interval_agrees_with_students_t() {
        // Logarithms 0, 1, 2: mean 1, deviation 1, error 0.57735; t for 2 degrees of freedom
        // 4.3027.
        let e = std::f64::consts::E;
        let paired = Paired::of(&[1.0; 3], &[1.0, e, e * e], 0.95).unwrap();
        assert!((paired.ratio.ln() - 1.0).abs() < 1e-9);
        assert!((paired.high.ln() - 1.0 - 2.4841).abs() < 1e-3, "{paired:?}");
        assert!((1.0 - paired.low.ln() - 2.4841).abs() < 1e-3, "{paired:?}");
        assert!(!paired.is_proven());
    }

    #[test]
    fn one_round_or_a_zero_proves_no_ratio() {
        assert_eq!(Paired::of(&[1.0], &[2.0], 0.95), None);
        assert_eq!(Paired::of(&[1.0, 0.0], &[2.0, 1.0], 0.95), None);
    }
}
