//! Published figures: tables and curves that others measured, read from CSV.
//!
//! The tables are files next to the experiments that show them. Lines that start with `#` name the
//! source.

use serde::de::DeserializeOwned;

use crate::chart::{Line, Point, Stroke};
use crate::result::Figure;
use crate::stats::Spread;

/// Returns the records of a table. Its header names the fields of `R`; a tuple is filled in the
/// order of the columns.
///
/// # Panics
///
/// If the table is malformed; tables are part of the program.
#[must_use]
pub fn records<R: DeserializeOwned>(table: &str) -> Vec<R> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(table.as_bytes());
    let records = reader.deserialize().collect::<Result<_, _>>();
    records.unwrap_or_else(|error| panic!("a table of published figures: {error}"))
}

/// Returns records in groups of equal keys, in the order of their first records.
pub fn grouped<R, K: PartialEq>(records: Vec<R>, key: impl Fn(&R) -> K) -> Vec<(K, Vec<R>)> {
    let mut groups: Vec<(K, Vec<R>)> = Vec::new();
    for record in records {
        let key = key(&record);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(record),
            None => groups.push((key, vec![record])),
        }
    }
    groups
}

/// A curve that others measured.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedCurve {
    /// Name in tables and legends.
    pub name: String,
    /// Points, with ascending `x`; at least one.
    pub points: Vec<(f64, f64)>,
}

impl PublishedCurve {
    /// Returns the first point.
    #[must_use]
    pub fn first(&self) -> (f64, f64) {
        self.points[0]
    }

    /// Returns the last point.
    #[must_use]
    pub fn last(&self) -> (f64, f64) {
        self.points[self.points.len() - 1]
    }

    /// Returns the greatest `y`.
    #[must_use]
    pub fn peak(&self) -> f64 {
        self.points.iter().map(|(_, y)| *y).fold(0.0, f64::max)
    }

    /// Returns `y` at exactly this `x`, if it is published.
    #[must_use]
    pub fn at(&self, x: f64) -> Option<f64> {
        self.points.iter().find(|point| point.0 == x).map(|point| point.1)
    }

    /// Returns the curve as a line of a chart; `point` places and describes its points.
    pub fn line<'a>(
        &'a self,
        colour: usize,
        stroke: Stroke,
        point: impl Fn(f64, f64) -> Point<'a>,
    ) -> Line<'a> {
        let points = self.points.iter().map(|(x, y)| point(*x, *y)).collect();
        Line { name: (&self.name[..]).into(), colour, stroke, points }
    }
}

/// Returns a published figure, which has one value.
#[must_use]
pub fn figure(value: f64) -> Figure {
    Figure::Spread(Spread::over(&[value]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Deserialize)]
    struct TableRow {
        name: String,
        x: f64,
        y: Option<u64>,
    }

    #[test]
    fn a_record_has_the_fields_of_the_header() {
        let table = "# Source: a paper\nname,x,y\n\"one, two\",1.5,2\nthree,4,\n";
        let found: Vec<TableRow> = records(table);
        let record = |name: &str, x, y| TableRow { name: name.to_owned(), x, y };
        assert_eq!(found, [record("one, two", 1.5, Some(2)), record("three", 4.0, None)]);
        let tuples: Vec<(String, f64, Option<u64>)> = records(table);
        assert_eq!(tuples[1], ("three".to_owned(), 4.0, None));
    }

    #[test]
    fn a_curve_has_ends_a_peak_and_exact_points() {
        let curve = PublishedCurve {
            name: "paper".to_owned(),
            points: vec![(1.0, 2.0), (2.0, 5.0), (4.0, 3.0)],
        };
        assert_eq!((curve.first(), curve.last(), curve.peak()), ((1.0, 2.0), (4.0, 3.0), 5.0));
        assert_eq!((curve.at(2.0), curve.at(3.0)), (Some(5.0), None));
    }

    #[test]
    fn records_of_one_key_form_a_group() {
        let groups = grouped(vec![(1, 'a'), (2, 'b'), (1, 'c')], |record| record.0);
        assert_eq!(groups, [(1, vec![(1, 'a'), (1, 'c')]), (2, vec![(2, 'b')])]);
    }
}
