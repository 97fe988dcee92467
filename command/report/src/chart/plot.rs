//! Plots: a chart with its title, legend and caption.

use serde::Serialize;

use super::standalone::{Words, standalone};
use super::{Axis, Bars, Chart, Group, Line, Scale, Sequences, decades, short_number};

/// A chart with title, legend and caption.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plot {
    /// Name of its file, without an ending.
    pub name: String,
    /// Title.
    pub title: String,
    /// Explanation for readers.
    pub caption: String,
    /// Class and name of each kind of line or bar.
    pub legend: Vec<(String, String)>,
    /// The chart as an `svg` element.
    pub svg: String,
}

/// Name, title and explanation of a plot.
#[derive(Clone, Copy, Debug)]
pub struct Heading<'a> {
    /// Name of its file, without an ending.
    pub name: &'a str,
    /// Title.
    pub title: &'a str,
    /// Explanation for readers.
    pub caption: &'a str,
}

impl Plot {
    /// Returns lines over an axis that holds all points and whiskers.
    #[must_use]
    pub fn lines(
        heading: Heading<'_>,
        x: Axis<'_>,
        (unit, scale): (&str, Scale),
        lines: Vec<Line<'_>>,
    ) -> Self {
        let points = lines.iter().flat_map(|line| &line.points);
        let ends = points.flat_map(|point| {
            let (low, high) = point.range.unwrap_or((point.y, point.y));
            [low, point.y, high]
        });
        let y = match scale {
            Scale::Linear => Axis::linear(unit, ends, short_number),
            _ => Axis::logarithmic(unit, ends.collect::<Vec<_>>().into_iter(), short_number),
        };
        let Heading { name, title, caption } = heading;
        Self::of_lines(name, title, caption, &Chart { description: title, x, y, lines })
    }

    /// Returns bars side by side over a linear axis that holds all bars and whiskers. If `factors`, they are multiples
    /// of 1, and a reader can switch to a logarithmic axis that holds 1.
    #[must_use]
    pub fn bars(
        heading: Heading<'_>,
        (label, unit): (&str, &str),
        groups: Vec<Group>,
        factors: bool,
    ) -> Self {
        let bars = groups.iter().flat_map(|group| &group.bars);
        let ends = bars.flat_map(|bar| {
            let (low, high) = bar.range.unwrap_or((bar.value, bar.value));
            [low, bar.value, high]
        });
        let ends: Vec<f64> = ends.collect();
        let mut y = Axis::linear(unit, ends.iter().copied(), short_number);
        if factors {
            let ticks = decades(ends.iter().copied().chain([1.0]), short_number);
            y = y.or(Scale::Logarithmic, ticks);
        }
        let Heading { name, title, caption } = heading;
        let bars = Bars { description: title, label, y, groups, stacked: false };
        Self::of_bars(name, title, caption, &bars)
    }

    /// Returns a plot of lines.
    #[must_use]
    pub fn of_lines(name: &str, title: &str, caption: &str, chart: &Chart<'_>) -> Self {
        Self::new(name, title, caption, chart.legend(), chart.svg())
    }

    /// Returns a plot of bars.
    #[must_use]
    pub fn of_bars(name: &str, title: &str, caption: &str, bars: &Bars<'_>) -> Self {
        Self::new(name, title, caption, bars.legend(), bars.svg())
    }

    /// Returns a plot of sequences.
    #[must_use]
    pub fn of_sequences(name: &str, title: &str, caption: &str, drawing: &Sequences<'_>) -> Self {
        Self::new(name, title, caption, drawing.legend(), drawing.svg())
    }

    fn new(
        name: &str,
        title: &str,
        caption: &str,
        legend: Vec<(String, String)>,
        svg: String,
    ) -> Self {
        let [name, title, caption] = [name, title, caption].map(str::to_owned);
        Self { name, title, caption, legend, svg }
    }

    /// Returns a file of its own: its name and its content. `about` is what the plot is about, if there are
    /// several of its kind. `source` says below the chart where its figures are from.
    #[must_use]
    pub fn file(&self, about: &str, source: &str) -> (String, String) {
        let (name, title) = if about.is_empty() {
            (self.name.clone(), self.title.clone())
        } else {
            (format!("{} {about}", self.name), format!("{}: {about}", self.title))
        };
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-");
        let below = [&self.caption[..], source];
        let words = Words { title: &title, legend: &self.legend, below: &below };
        (name + ".svg", standalone(&self.svg, &words))
    }
}
