//! Series: the measurements of one contender along a parameter, run by run.
//!
//! An experiment that repeats its measurement for several values of a parameter (a rate, a number
//! of workers) has one series per contender. Tables and lines of charts are read from it.

use crate::chart::Point;
use crate::result::{Table, short};
use crate::runs::{Measure, Runs};
use crate::stats::Spread;

/// The measurements of one contender, at each value of a parameter in ascending order.
#[derive(Clone, Debug)]
pub struct Series<M> {
    /// The values with their measurements; each has at least one run.
    pub points: Vec<SeriesPoint<M>>,
}

/// The measurements at one value of the parameter.
#[derive(Clone, Debug)]
pub struct SeriesPoint<M> {
    /// Identifies the value in all series of an experiment: the number of workers, the index of a
    /// rate.
    pub key: usize,
    /// The results.
    pub runs: Runs<M>,
}

impl<M> Series<M> {
    /// Returns the point with the least value of the parameter.
    ///
    /// # Panics
    ///
    /// If the series is empty.
    #[must_use]
    pub fn first(&self) -> &SeriesPoint<M> {
        self.points.first().expect("at least one point")
    }

    /// Returns the point with the greatest value of the parameter.
    ///
    /// # Panics
    ///
    /// If the series is empty.
    #[must_use]
    pub fn last(&self) -> &SeriesPoint<M> {
        self.points.last().expect("at least one point")
    }

    /// Returns the point of that key.
    #[must_use]
    pub fn get(&self, key: usize) -> Option<&SeriesPoint<M>> {
        self.points.iter().find(|point| point.key == key)
    }

    /// Returns the greatest value of a figure in each run, with the number of the run.
    pub fn peaks(&self, measure: Measure<M>) -> Vec<(usize, f64)> {
        let mut peaks: Vec<(usize, f64)> = Vec::new();
        for (run, value) in self.points.iter().flat_map(|point| point.runs.by_run(measure)) {
            match peaks.iter_mut().find(|(known, _)| *known == run) {
                Some((_, peak)) => *peak = peak.max(value),
                None => peaks.push((run, value)),
            }
        }
        peaks
    }

    /// Returns the points of a line: medians over the runs, with whiskers if there are several
    /// runs. `at` returns the place on the level axis, and its words for a pointer; `unit` follows
    /// the value in the pointer's text.
    pub fn line_points<'a>(
        &self,
        at: impl Fn(&SeriesPoint<M>) -> (f64, String),
        measure: impl Fn(&M) -> Option<f64>,
        unit: &str,
    ) -> Vec<Point<'a>> {
        let point = |point: &SeriesPoint<M>| {
            let Spread { median: y, min, max } = point.runs.spread(&measure)?;
            let (x, at) = at(point);
            let range = (point.runs.len() > 1).then_some((min, max));
            Some(Point { x, y, range, at: at.into(), says: format!("{}{unit}", short(y)).into() })
        };
        self.points.iter().filter_map(point).collect()
    }
}

/// A column of a table by the parameter: its header, the series, and the cell of a point.
pub type Column<'a, M> = (String, &'a Series<M>, &'a dyn Fn(&SeriesPoint<M>) -> String);

/// Returns a table with a line for each value of the parameter that any of the series has. `label`
/// returns the first cell for the points of one value.
pub fn table<M>(
    title: String,
    corner: &str,
    columns: &[Column<'_, M>],
    label: impl Fn(&[&SeriesPoint<M>]) -> String,
) -> Table {
    let mut keys: Vec<usize> =
        columns.iter().flat_map(|(_, series, _)| series.points.iter().map(|it| it.key)).collect();
    keys.sort_unstable();
    keys.dedup();
    let line = |key: usize| {
        let points: Vec<&SeriesPoint<M>> =
            columns.iter().filter_map(|(_, series, _)| series.get(key)).collect();
        let cells =
            columns.iter().map(|(_, series, cell)| series.get(key).map_or_else(String::new, cell));
        [label(&points)].into_iter().chain(cells).collect()
    };
    let header = [corner.to_owned()].into_iter().chain(columns.iter().map(|it| it.0.clone()));
    Table::new(title, header, keys.into_iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a series of plain numbers: the values of each run at each key.
    fn series(points: &[(usize, &[f64])]) -> Series<f64> {
        let point = |(key, runs): &(usize, &[f64])| SeriesPoint {
            key: *key,
            runs: (1..).zip(runs.iter().copied()).collect(),
        };
        Series { points: points.iter().map(point).collect() }
    }

    const VALUE: Measure<f64> = |value| (*value >= 0.0).then_some(*value);

    #[test]
    fn peaks_belong_to_runs() {
        let series = series(&[(1, &[3.0, 1.0]), (2, &[2.0, 5.0])]);
        assert_eq!(series.peaks(VALUE), [(1, 3.0), (2, 5.0)]);
    }

    #[test]
    fn one_run_has_no_whisker_and_an_unknown_figure_no_point() {
        let series = series(&[(1, &[3.0]), (2, &[4.0, 6.0]), (3, &[-1.0])]);
        let at = |point: &SeriesPoint<f64>| (point.key as f64, format!("{} workers", point.key));
        let points = series.line_points(at, VALUE, " kops");
        let ranges: Vec<_> = points.iter().map(|it| (it.x, it.range)).collect();
        assert_eq!(ranges, [(1.0, None), (2.0, Some((4.0, 6.0)))]);
        assert_eq!((&points[1].at[..], &points[1].says[..]), ("2 workers", "5.00 kops"));
    }

    #[test]
    fn a_table_has_a_line_for_every_key_and_gaps_where_a_series_has_none() {
        let (one, other) = (series(&[(1, &[1.0]), (4, &[2.0])]), series(&[(2, &[3.0])]));
        let cell = |point: &SeriesPoint<f64>| short(point.runs.median(VALUE).unwrap());
        let columns: [Column<'_, f64>; 2] =
            [("one".to_owned(), &one, &cell), ("other".to_owned(), &other, &cell)];
        let table = table("title".to_owned(), "n", &columns, |points| points[0].key.to_string());
        assert_eq!(table.header, ["n", "one", "other"]);
        assert_eq!(table.lines, [["1", "1.00", ""], ["2", "", "3.00"], ["4", "2.00", ""]]);
    }
}
