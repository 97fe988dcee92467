//! Runs: the results of one measurement that was repeated.

use serde_json::{Value, json};

use crate::result::{Figure, rounded};
use crate::stats::Spread;

/// A figure of a result; `None` if it is unknown.
pub type Measure<M> = fn(&M) -> Option<f64>;

/// The results of a measurement, each with the number of its run. Runs without a result are
/// missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs<M>(Vec<(usize, M)>);

impl<M> Runs<M> {
    /// Adds the result of a run.
    pub fn add(&mut self, run: usize, result: M) {
        self.0.push((run, result));
    }

    /// Returns whether no run has a result.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of results.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the results with the numbers of their runs.
    pub fn numbered(&self) -> impl Iterator<Item = (usize, &M)> {
        self.0.iter().map(|(run, result)| (*run, result))
    }

    /// Returns the results.
    pub fn results(&self) -> impl Iterator<Item = &M> {
        self.0.iter().map(|(_, result)| result)
    }

    /// Returns the results, to be changed.
    pub fn results_mut(&mut self) -> impl Iterator<Item = &mut M> {
        self.0.iter_mut().map(|(_, result)| result)
    }

    /// Returns the figure of each run, with the number of the run. Runs without the figure are
    /// skipped.
    pub fn by_run(&self, measure: impl Fn(&M) -> Option<f64>) -> Vec<(usize, f64)> {
        self.numbered().filter_map(|(run, it)| Some((run, measure(it)?))).collect()
    }

    /// Returns the spread of a figure over the runs; `None` if it is unknown in one of them, or no
    /// run has a result.
    pub fn spread(&self, measure: impl Fn(&M) -> Option<f64>) -> Option<Spread> {
        let values: Option<Vec<f64>> = self.results().map(measure).collect();
        values.filter(|values| !values.is_empty()).map(|values| Spread::over(&values))
    }

    /// Returns the spread of a figure over the runs that have it; `None` if no run has.
    pub fn known_spread(&self, measure: impl Fn(&M) -> Option<f64>) -> Option<Spread> {
        let values: Vec<f64> = self.results().filter_map(measure).collect();
        (!values.is_empty()).then(|| Spread::over(&values))
    }

    /// Returns the median of a figure; `None` as for [`Runs::spread`].
    pub fn median(&self, measure: impl Fn(&M) -> Option<f64>) -> Option<f64> {
        self.spread(measure).map(|spread| spread.median)
    }

    /// Returns the spread of a figure for a row.
    pub fn figure(&self, measure: impl Fn(&M) -> Option<f64>) -> Option<Figure> {
        self.spread(measure).map(Figure::Spread)
    }

    /// Returns the sum of a count over the runs, for a row.
    pub fn sum(&self, count: impl Fn(&M) -> u64) -> Figure {
        Figure::Count(self.results().map(count).sum())
    }

    /// Returns the result with the median of a figure, the upper one of two; unknown figures sort
    /// first.
    ///
    /// # Panics
    ///
    /// If no run has a result.
    pub fn typical(&self, measure: Measure<M>) -> &M {
        let mut results: Vec<&M> = self.results().collect();
        let value = |it: &M| measure(it).unwrap_or(f64::NEG_INFINITY);
        results.sort_by(|a, b| value(a).total_cmp(&value(b)));
        results[results.len() / 2]
    }

    /// Returns the runs as JSON: the members of `base`, the figure `ranged` with its least and
    /// greatest value, and the medians of the figures that are known.
    pub fn json(
        &self,
        mut base: Value,
        (name, ranged): (&str, Measure<M>),
        medians: &[(&str, Measure<M>)],
    ) -> Value {
        if let Some(Spread { median, min, max }) = self.spread(ranged) {
            base[name] = json!(rounded(median));
            base[format!("{name}_min")] = json!(rounded(min));
            base[format!("{name}_max")] = json!(rounded(max));
        }
        for (name, measure) in medians {
            if let Some(median) = self.median(measure) {
                base[*name] = json!(rounded(median));
            }
        }
        base
    }
}

impl<M> Default for Runs<M> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<M> FromIterator<(usize, M)> for Runs<M> {
    fn from_iter<I: IntoIterator<Item = (usize, M)>>(results: I) -> Self {
        Self(results.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns plain numbers as results; negative ones are unknown.
    fn runs(values: &[f64]) -> Runs<f64> {
        (1..).zip(values.iter().copied()).collect()
    }

    const VALUE: Measure<f64> = |value| (*value >= 0.0).then_some(*value);

    #[test]
    fn runs_are_summarised() {
        let three = runs(&[3.0, 1.0, 2.0]);
        assert_eq!(three.spread(VALUE), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!((*three.typical(VALUE), three.sum(|it| *it as u64)), (2.0, Figure::Count(6)));
    }

    #[test]
    fn a_figure_that_is_unknown_in_one_run_has_a_spread_only_over_the_others() {
        let unknown = runs(&[4.0, -1.0]);
        assert_eq!((unknown.median(VALUE), unknown.by_run(VALUE)), (None, vec![(1, 4.0)]));
        assert_eq!(unknown.known_spread(VALUE).map(|spread| spread.max), Some(4.0));
        assert_eq!((runs(&[-1.0]).known_spread(VALUE), runs(&[]).spread(VALUE)), (None, None));
    }

    #[test]
    fn json_has_a_range_and_the_medians_that_are_known() {
        let base = json!({ "n": 7 });
        let found = runs(&[3.0, 1.0]).json(base, ("v", VALUE), &[("m", VALUE), ("x", |_| None)]);
        let expected = json!({ "n": 7, "v": 2.0, "v_min": 1.0, "v_max": 3.0, "m": 2.0 });
        assert_eq!(found, expected);
    }
}
