//! Comparisons: the difference of two contenders with its confidence interval.

use std::fmt;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::number::{rounded, short};
use crate::stats::{Difference, Sample};

/// The difference of a figure of two contenders over all runs.
///
/// A [`Ratio`](super::Ratio) is computed within each run; a comparison treats the runs as
/// independent samples, as ministat does.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Name of the figure, like `short_p99`.
    pub figure: String,
    /// The compared contender.
    pub of: String,
    /// The contender to compare with.
    pub against: String,
    /// The figure of `of`.
    pub theirs: Sample,
    /// The figure of `against`.
    pub base: Sample,
    /// `theirs` less `base`; `None` if either has a single run.
    pub difference: Option<Difference>,
}

impl Comparison {
    /// Returns the comparison of two contenders with one value per run each. The numbers of runs
    /// may differ.
    ///
    /// # Panics
    ///
    /// If a contender has no run, or a value is not a number.
    #[must_use]
    pub fn between(figure: &str, (of, theirs): (&str, &[f64]), base: (&str, &[f64])) -> Self {
        let (against, base) = base;
        let (theirs, base) = (Sample::of(theirs), Sample::of(base));
        Self {
            figure: figure.to_owned(),
            of: of.to_owned(),
            against: against.to_owned(),
            theirs,
            base,
            difference: Difference::of(&base, &theirs, Difference::CONFIDENCE),
        }
    }
}

/// `short_p99, tcp against apus: +58.3 ± 3.1 (+1340 % ± 71 %) at 95 % confidence`.
impl fmt::Display for Comparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { figure, of, against, theirs, base, difference } = self;
        write!(formatter, "{figure}, {of} against {against}: ")?;
        let Some(difference) = difference else {
            return write!(formatter, "one run shows no difference");
        };
        let percent = 100.0 * difference.confidence;
        if !difference.is_proven() {
            return write!(
                formatter,
                "no difference proven at {percent} % confidence ({} ± {}, n = {} and {})",
                short(difference.mean),
                short(difference.half_width),
                theirs.count,
                base.count,
            );
        }
        write!(formatter, "{} ± {}", signed(difference.mean), short(difference.half_width))?;
        if let Some((mean, half_width)) = difference.percent() {
            write!(formatter, " ({} % ± {} %)", signed(mean), short(half_width))?;
        }
        write!(
            formatter,
            " at {percent} % confidence (Student's t, pooled s = {}, n = {} and {})",
            short(difference.pooled),
            theirs.count,
            base.count,
        )
    }
}

fn signed(value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}", short(value))
}

impl Serialize for Comparison {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("figure", &self.figure)?;
        map.serialize_entry("of", &self.of)?;
        map.serialize_entry("against", &self.against)?;
        map.serialize_entry("n", &[self.theirs.count, self.base.count])?;
        map.serialize_entry("mean", &[self.theirs.mean, self.base.mean].map(rounded))?;
        map.serialize_entry("stddev", &[self.theirs.deviation, self.base.deviation].map(rounded))?;
        if let Some(difference) = &self.difference {
            map.serialize_entry("difference", &rounded(difference.mean))?;
            map.serialize_entry("half_width", &rounded(difference.half_width))?;
            map.serialize_entry("pooled_stddev", &rounded(difference.pooled))?;
            map.serialize_entry("confidence", &difference.confidence)?;
            map.serialize_entry("proven", &difference.is_proven())?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compare(tcp: &[f64], apus: &[f64]) -> Comparison {
        Comparison::between("short_p99", ("tcp", tcp), ("apus", apus))
    }

    #[test]
    fn a_sentence_states_the_proven_difference() {
        // Pooled deviation 1, Student's t for 4 degrees of freedom 2.7764, times sqrt(2/3): 2.2670.
        let proven = compare(&[51.0, 52.0, 53.0], &[3.0, 4.0, 5.0]);
        assert_eq!(
            proven.to_string(),
            "short_p99, tcp against apus: +48.0 ± 2.27 (+1200 % ± 56.7 %) at 95 % confidence \
             (Student's t, pooled s = 1.00, n = 3 and 3)"
        );
        let less = compare(&[3.0, 4.0, 5.0], &[51.0, 52.0, 53.0]).to_string();
        assert!(less.contains(": -48.0 ± 2.27 (-92.3 % ± 4.36 %)"), "{less}");
        assert_eq!(
            compare(&[3.0, 4.0, 6.0], &[3.0, 4.0, 5.0]).to_string(),
            "short_p99, tcp against apus: no difference proven at 95 % confidence \
             (0.333 ± 2.93, n = 3 and 3)"
        );
        assert_eq!(
            compare(&[50.0], &[3.0, 4.0]).to_string(),
            "short_p99, tcp against apus: one run shows no difference"
        );
    }

    #[test]
    fn machines_read_the_same() {
        let found = serde_json::to_value(compare(&[51.0, 52.0, 53.0], &[3.0, 4.0, 5.0])).unwrap();
        let expected = json!({
            "figure": "short_p99", "of": "tcp", "against": "apus", "n": [3, 3],
            "mean": [52.0, 4.0], "stddev": [1.0, 1.0],
            "difference": 48.0, "half_width": 2.267, "pooled_stddev": 1.0,
            "confidence": 0.95, "proven": true,
        });
        assert_eq!(found, expected);
        let one = serde_json::to_value(compare(&[50.0], &[3.0])).unwrap();
        assert_eq!(one.get("difference"), None);
    }
}
