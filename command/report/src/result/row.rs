//! Rows: the figures of one contender.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::number::rounded;
use super::phases::PhaseCounts;
use crate::stats::Spread;

/// The figures of a contender.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The contender, like `udp`.
    pub name: String,
    /// Why there are no figures, if all measurements were lost.
    pub missing: Option<String>,
    /// Figures by name, in the order of the report. The name ends with the unit.
    pub figures: Vec<(String, Figure)>,
}

/// A measured figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// A value per run. In JSON the median has the figure's name, and the least and the greatest
    /// value the suffixes `_min` and `_max`.
    Spread(Spread),
    /// A count over all runs.
    Count(u64),
    /// Structured data; tables leave it out.
    Detail(Value),
}

impl Figure {
    /// Returns the spread of a figure over `runs`.
    pub fn over<R>(runs: &[R], figure: impl Fn(&R) -> f64) -> Self {
        Self::Spread(Spread::over(&runs.iter().map(figure).collect::<Vec<_>>()))
    }
}

impl Row {
    /// Returns a row without figures.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), missing: None, figures: Vec::new() }
    }

    /// Returns the row of a contender without a result.
    #[must_use]
    pub fn missing(name: &str, why: &str, counts: &PhaseCounts) -> Self {
        let mut row = Self { missing: Some(why.to_owned()), ..Self::new(name) };
        row.count(counts);
        row
    }

    /// Returns whether the contender has no result.
    #[must_use]
    pub const fn is_missing(&self) -> bool {
        self.missing.is_some()
    }

    /// Adds the counts of repeated, disturbed and lost phases, if there are any.
    pub fn count(&mut self, counts: &PhaseCounts) {
        let detail = counts.detail().map(|detail| ("phases".to_owned(), Figure::Detail(detail)));
        self.figures.extend(detail);
    }

    /// Adds a figure.
    #[must_use]
    pub fn with(mut self, name: &str, figure: Figure) -> Self {
        self.figures.push((name.to_owned(), figure));
        self
    }

    /// Adds a figure, if it is known.
    #[must_use]
    pub fn with_known(self, name: &str, figure: Option<Figure>) -> Self {
        match figure {
            Some(figure) => self.with(name, figure),
            None => self,
        }
    }

    /// Adds the spread of a figure over `runs`.
    #[must_use]
    pub fn with_spread<R>(self, name: &str, runs: &[R], figure: impl Fn(&R) -> f64) -> Self {
        self.with(name, Figure::over(runs, figure))
    }

    /// Adds the sum of a count over `runs`.
    #[must_use]
    pub fn with_sum<R>(self, name: &str, runs: &[R], count: impl Fn(&R) -> u64) -> Self {
        self.with(name, Figure::Count(runs.iter().map(count).sum()))
    }

    /// Returns the figure of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|(each, _)| each == name).map(|(_, figure)| figure)
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        if let Some(why) = &self.missing {
            map.serialize_entry("missing", why)?;
        }
        for (name, figure) in &self.figures {
            match figure {
                Figure::Spread(Spread { median, min, max }) => {
                    map.serialize_entry(name, &rounded(*median))?;
                    map.serialize_entry(&format!("{name}_min"), &rounded(*min))?;
                    map.serialize_entry(&format!("{name}_max"), &rounded(*max))?;
                }
                Figure::Count(count) => map.serialize_entry(name, count)?,
                Figure::Detail(value) => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}
