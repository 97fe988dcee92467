//! Declarations: the report of an experiment as data.
//!
//! An experiment declares its texts, the figures of its rows, its ratios, and published figures to
//! compare with. [`Declaration::findings`] turns that into [`Findings`], the source of text, JSON
//! and page.

use serde::Serialize;

use crate::chart::Plot;
use crate::experiment::config;
use crate::findings::{Findings, Section};
use crate::result::{Comparison, Figure, Outcome, Ratio, Row, Table};

/// A figure in the row of a contender `C`.
#[derive(Clone, Copy, Debug)]
pub struct RowFigure<C> {
    /// Name in JSON; it ends with the unit.
    name: &'static str,
    /// Whether a terminal shows it.
    is_shown: bool,
    /// Returns the figure; `None` if it is unknown.
    value: fn(&C) -> Option<Figure>,
}

impl<C> RowFigure<C> {
    /// Returns a figure that the table of a terminal shows.
    pub const fn shown(name: &'static str, value: fn(&C) -> Option<Figure>) -> Self {
        Self { name, is_shown: true, value }
    }

    /// Returns a figure for machines only.
    pub const fn hidden(name: &'static str, value: fn(&C) -> Option<Figure>) -> Self {
        Self { name, is_shown: false, value }
    }
}

/// The quotient of two figures, each given run by run with the number of the run.
#[derive(Clone, Debug)]
pub struct Quotient {
    /// Name in JSON, like `apus/tcp`.
    pub name: String,
    /// Dividend by run.
    pub dividend: Vec<(usize, f64)>,
    /// Divisor by run.
    pub divisor: Vec<(usize, f64)>,
}

/// The report of an experiment on contenders `C`.
#[derive(Clone, Debug)]
pub struct Declaration<'a, C> {
    /// Name in JSON.
    pub experiment: &'static str,
    /// Heading of the page.
    pub title: &'static str,
    /// Paragraph below the heading.
    pub lead: &'static str,
    /// Figures of each row, in order.
    pub figures: &'a [RowFigure<C>],
    /// Rows of figures that others published, behind the measured rows.
    pub published: Vec<Row>,
    /// Quotients that become ratios. A quotient without a common run, or with a divisor of 0, is
    /// left out.
    pub quotients: Vec<Quotient>,
    /// Differences with confidence intervals.
    pub comparisons: Vec<Comparison>,
    /// Reservations about the figures.
    pub notes: Vec<String>,
    /// Sections before the plots.
    pub opening: Vec<Section>,
    /// Charts.
    pub plots: Vec<Plot>,
    /// Sentences about the figures.
    pub sentences: Vec<String>,
    /// More tables.
    pub tables: Vec<Table>,
    /// Sections at the end.
    pub closing: Vec<Section>,
}

impl<'a, C> Declaration<'a, C> {
    /// Returns a declaration that consists of rows.
    #[must_use]
    pub const fn new(
        experiment: &'static str,
        title: &'static str,
        lead: &'static str,
        figures: &'a [RowFigure<C>],
    ) -> Self {
        Self {
            experiment,
            title,
            lead,
            figures,
            published: Vec::new(),
            quotients: Vec::new(),
            comparisons: Vec::new(),
            notes: Vec::new(),
            opening: Vec::new(),
            plots: Vec::new(),
            sentences: Vec::new(),
            tables: Vec::new(),
            closing: Vec::new(),
        }
    }

    /// Returns the findings about these contenders, each with the name of its row.
    ///
    /// # Panics
    ///
    /// If `options` does not serialise to a JSON object.
    pub fn findings<'c>(
        self,
        options: &impl Serialize,
        contenders: impl IntoIterator<Item = (String, &'c C)>,
    ) -> Findings
    where
        C: 'c,
    {
        let mut outcome = Outcome::new(self.experiment, config(options));
        let row = |(name, contender): (String, &C)| {
            let figures = self.figures.iter();
            figures.fold(Row::new(&name), |row, it| row.with_known(it.name, (it.value)(contender)))
        };
        outcome.rows = contenders.into_iter().map(row).chain(self.published).collect();
        let ratio = |it: Quotient| Some((it.name, Ratio::paired(&it.dividend, &it.divisor)?));
        outcome.ratios = self.quotients.into_iter().filter_map(ratio).collect();
        outcome.comparisons = self.comparisons;
        outcome.notes = self.notes;
        let mut findings = Findings::new(outcome, self.title, self.lead);
        let shown = self.figures.iter().filter(|figure| figure.is_shown);
        findings.columns = Some(shown.map(|figure| figure.name).collect());
        let findings = self.opening.into_iter().fold(findings, Findings::with);
        let findings = findings.with_all(self.plots, self.sentences, self.tables);
        self.closing.into_iter().fold(findings, Findings::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::read;
    use serde_json::{Value, json};

    const FIGURES: &[RowFigure<[f64; 2]>] = &[
        RowFigure::hidden("runs", |runs| Some(Figure::Detail(json!(runs)))),
        RowFigure::shown("p50_us", |runs| Some(Figure::over(runs, |run| *run))),
        RowFigure::shown("lost", |_| None),
    ];

    #[test]
    fn a_declaration_becomes_rows_columns_and_ratios() {
        let quotient = |name: &str, divisor: Vec<(usize, f64)>| Quotient {
            name: name.to_owned(),
            dividend: vec![(1, 2.0), (2, 4.0)],
            divisor,
        };
        let declaration = Declaration {
            published: vec![Row::new("published")],
            quotients: vec![
                quotient("apus/tcp", vec![(1, 1.0), (2, 1.0)]),
                quotient("apus/lost", vec![]),
            ],
            notes: vec!["others were busy".to_owned()],
            sentences: vec!["apus is slow".to_owned()],
            ..Declaration::new("test", "Title", "Lead", FIGURES)
        };
        let options = json!({ "seconds": 1 });
        let findings = declaration.findings(&options, [("apus".to_owned(), &[1.0, 3.0])]);
        let json: Value =
            serde_json::from_str(&read::json(&findings, &["rows", "ratios", "config"])).unwrap();
        let apus = json!({
            "name": "apus", "runs": [1.0, 3.0], "p50_us": 2.0, "p50_us_min": 1.0, "p50_us_max": 3.0,
        });
        assert_eq!(json["rows"], json!([apus, { "name": "published" }]));
        assert_eq!(json["ratios"]["apus/tcp"]["median"], 3.0);
        assert_eq!(json["ratios"].as_object().unwrap().len(), 1, "the other has no common run");
        let text = read::text(&findings);
        assert!(
            text.contains("p50 us") && text.contains("lost") && !text.contains("runs"),
            "{text}"
        );
        assert!(text.contains("apus is slow") && text.contains("note: others were busy"), "{text}");
    }
}
