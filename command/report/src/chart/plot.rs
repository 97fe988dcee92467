//! Plots: a chart with its title, legend and caption.

use serde::Serialize;

use super::axis::{Axis, Scale, decades, short_number};
use super::bars::{Bars, Group};
use super::lines::{Chart, Line};
use super::sequence::Sequences;
use super::standalone::{Words, standalone};

/// A chart with title, legend and caption.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plot {
    /// Name of its file, without extension.
    pub name: String,
    /// Title.
    pub title: String,
    /// Caption.
    pub caption: String,
    /// Class and name of each kind of line or bar.
    pub legend: Vec<(String, String)>,
    /// The chart as an `svg` element.
    pub svg: String,
}

/// Name, title and caption of a plot.
#[derive(Clone, Copy, Debug)]
pub struct Heading<'a> {
    /// Name of its file, without extension.
    pub name: &'a str,
    /// Title.
    pub title: &'a str,
    /// Caption.
    pub caption: &'a str,
}

impl Plot {
    /// Returns lines over an axis that covers all points and whiskers.
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

    /// Returns bars side by side over a linear axis that covers all bars and whiskers. If
    /// `factors`, the values are factors, and a reader can switch to a logarithmic axis that covers
    /// 1.
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

    /// Returns the plot as a file, with name and content. `about` is its subject, if there are
    /// several plots of its kind. `source` is the origin of the figures, shown below the chart.
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
