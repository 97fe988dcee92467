//! What belongs to a chart?

use serde::Serialize;

use super::standalone::standalone;
use super::{Bars, Chart, Sequences};

/// A chart with what belongs to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plot {
    /// What its file is called, without an ending.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// How it is read.
    pub caption: String,
    /// Class of what is drawn, and what it stands for.
    pub legend: Vec<(String, String)>,
    /// The chart as an `svg` element.
    pub svg: String,
}

impl Plot {
    /// Lines.
    #[must_use]
    pub fn of_lines(name: &str, title: &str, caption: &str, chart: &Chart<'_>) -> Self {
        Self::new(name, title, caption, chart.legend(), chart.svg())
    }

    /// Bars.
    #[must_use]
    pub fn of_bars(name: &str, title: &str, caption: &str, bars: &Bars<'_>) -> Self {
        Self::new(name, title, caption, bars.legend(), bars.svg())
    }

    /// Who sent what when.
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

    /// A file of its own: its name and its content. `about` is what the plot is about, if there are
    /// several of its kind.
    #[must_use]
    pub fn file(&self, about: &str) -> (String, String) {
        let (name, title) = if about.is_empty() {
            (self.name.clone(), self.title.clone())
        } else {
            (format!("{} {about}", self.name), format!("{}: {about}", self.title))
        };
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-");
        (name + ".svg", standalone(&self.svg, &title, &self.legend))
    }
}
