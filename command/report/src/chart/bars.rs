//! Bar charts.

use std::fmt::{self, Write};

use minijinja::HtmlEscape;

use super::axis::Axis;
use super::frame::{BOTTOM, HEIGHT, LEFT, RIGHT, WIDTH};
use super::frame::{draw_y, label_x, open, place_y, whisker};
use super::stroke::{Stroke, class, legend};
use crate::result::short;
use crate::result::table::spread_in_words;
use crate::stats::Spread;

/// Groups of bars over a vertical axis.
#[derive(Clone, Debug)]
pub struct Bars<'a> {
    /// Description for screen readers.
    pub description: &'a str,
    /// Label of the horizontal axis.
    pub label: &'a str,
    /// The vertical axis.
    pub y: Axis<'a>,
    /// From left to right.
    pub groups: Vec<Group>,
    /// Whether the bars of a group are stacked rather than side by side. The axis must then be
    /// linear, start at 0, and cover the sums.
    pub stacked: bool,
}

/// The bars of one label.
#[derive(Clone, Debug)]
pub struct Group {
    /// The subject of the bars.
    pub label: String,
    /// From left to right, or from below.
    pub bars: Vec<Bar>,
}

/// A bar, and the text for a pointer.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Name in the legend. Bars of one name are shown and hidden together.
    pub name: String,
    /// Number of the contender, which gives the colour.
    pub colour: usize,
    /// Style of the bar.
    pub stroke: Stroke,
    /// Height.
    pub value: f64,
    /// Least and greatest value over the runs, drawn as a whisker; not for stacked bars.
    pub range: Option<(f64, f64)>,
    /// Text for a pointer, like `12.3 (11.9 – 12.8)`.
    pub says: String,
}

impl Bar {
    /// Returns the bar of a figure over runs: the median, with a whisker over the runs.
    #[must_use]
    pub fn spread(name: impl Into<String>, colour: usize, spread: &Spread) -> Self {
        let says = spread_in_words(spread);
        Self {
            range: Some((spread.min, spread.max)),
            ..Self::value(name, colour, spread.median, says)
        }
    }

    /// Returns a bar without a whisker; `says` is the text for a pointer.
    #[must_use]
    pub fn value(name: impl Into<String>, colour: usize, value: f64, says: String) -> Self {
        Self { name: name.into(), colour, stroke: Stroke::Plain, value, range: None, says }
    }
}

/// Share of a group's width that stays free.
const GAP: f64 = 0.28;

/// Greatest width of a bar, side by side and stacked.
const WIDEST: f64 = 46.0;
const WIDEST_STACK: f64 = 90.0;

/// Least width of a bar with its value above.
const LABELLED: f64 = 26.0;

/// Distance between two lines of text, and the approximate width of a letter.
const LINE: f64 = 13.0;
const LETTER: f64 = 6.5;

/// Returns the lines of a label: two if one is too long for its group.
fn lines_of(label: &str, width: f64) -> Vec<&str> {
    if label.chars().count() as f64 * LETTER <= width {
        return vec![label];
    }
    // Split at the space nearest to the middle.
    let middle = label.len() / 2;
    let space = label.match_indices(' ').min_by_key(|(at, _)| at.abs_diff(middle));
    match space {
        Some((at, _)) => vec![&label[..at], &label[at + 1..]],
        None => vec![label],
    }
}

impl Bars<'_> {
    /// Returns the chart as an `svg` element.
    ///
    /// # Panics
    ///
    /// If the axis has fewer than two ticks.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut svg = String::new();
        self.draw(&mut svg).expect("writing to a string");
        svg
    }

    /// Returns class and name of the elements, each name once.
    #[must_use]
    pub fn legend(&self) -> Vec<(String, String)> {
        let bars = self.groups.iter().flat_map(|group| &group.bars);
        legend(bars.map(|bar| (bar.colour, bar.stroke, &bar.name[..])))
    }

    fn draw(&self, to: &mut String) -> fmt::Result {
        open(to, self.description, if self.stacked { "stack" } else { "bars" })?;
        draw_y(to, &self.y)?;
        let width = (WIDTH - LEFT - RIGHT) / self.groups.len().max(1) as f64;
        for (index, group) in self.groups.iter().enumerate() {
            let left = LEFT + width * index as f64;
            draw_label(&group.label, left, width, to)?;
            if self.stacked {
                self.draw_stack(group, left, width, to)?;
            } else {
                self.draw_group(group, left, width, to)?;
            }
        }
        label_x(to, self.label)?;
        writeln!(to, "</svg>")
    }

    fn draw_stack(&self, group: &Group, left: f64, width: f64, to: &mut String) -> fmt::Result {
        let wide = (width * (1.0 - GAP)).min(WIDEST_STACK);
        let left = left + (width - wide) / 2.0;
        let mut below = 0.0;
        for bar in &group.bars {
            let place = BarPlace { left, width: wide, below };
            self.draw_bar(bar, &group.label, &place, to)?;
            below += bar.value;
        }
        Ok(())
    }

    fn draw_group(&self, group: &Group, left: f64, width: f64, to: &mut String) -> fmt::Result {
        let each = (width * (1.0 - GAP) / group.bars.len().max(1) as f64).min(WIDEST);
        let first = left + (width - each * group.bars.len() as f64) / 2.0;
        for (index, bar) in group.bars.iter().enumerate() {
            let left = first + each * index as f64;
            self.draw_bar(bar, &group.label, &BarPlace { left, width: each, below: 0.0 }, to)?;
        }
        Ok(())
    }

    fn draw_bar(&self, bar: &Bar, at: &str, place: &BarPlace, to: &mut String) -> fmt::Result {
        let BarPlace { left, width, below } = *place;
        let y = |value| place_y(&self.y, value);
        let bottom = if self.stacked { y(below) } else { HEIGHT - BOTTOM };
        let top = y(below + bar.value);
        let (x, wide, high) = (left + 1.0, width - 2.0, (bottom - top).max(LEAST));
        let (name, at, says) = (HtmlEscape(&bar.name), HtmlEscape(at), HtmlEscape(&bar.says));
        let (class, value) = (class(bar.colour, bar.stroke), bar.value);
        let top = bottom - high;
        writeln!(
            to,
            r#"<g data-name="{name}"><rect class="{class}" x="{x:.1}" y="{top:.1}" width="{wide:.1}" height="{high:.1}" rx="2" data-y="{value}" data-at="{at}" data-says="{says}"><title>{name}, {at}: {says}</title></rect>"#
        )?;
        let middle = left + width / 2.0;
        if let Some(range) = bar.range {
            whisker(to, &self.y, "ink", middle, range)?;
        }
        if width >= LABELLED && !self.stacked {
            let y = bar.range.map_or(top, |(_, greatest)| y(greatest).min(top)) - 4.0;
            let value = short(bar.value);
            writeln!(
                to,
                r#"<text class="value" x="{middle:.1}" y="{y:.1}" text-anchor="middle">{value}</text>"#
            )?;
        }
        writeln!(to, "</g>")
    }
}

/// The place of a bar.
struct BarPlace {
    left: f64,
    width: f64,
    /// Value of its lower end.
    below: f64,
}

/// Height of a bar with the value 0.
const LEAST: f64 = 0.5;

/// Draws the label of a group.
fn draw_label(label: &str, left: f64, width: f64, to: &mut String) -> fmt::Result {
    let middle = left + width / 2.0;
    for (line, part) in lines_of(label, width).into_iter().enumerate() {
        let y = HEIGHT - BOTTOM + 16.0 + LINE * line as f64;
        let part = HtmlEscape(part);
        writeln!(to, r#"<text x="{middle:.1}" y="{y}" text-anchor="middle">{part}</text>"#)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::short_number;

    #[test]
    fn long_labels_have_two_lines() {
        assert_eq!(lines_of("w2 load=0.8", 100.0), ["w2 load=0.8"]);
        assert_eq!(lines_of("w2 load=0.8 window=1", 100.0), ["w2 load=0.8", "window=1"]);
        assert_eq!(lines_of("indivisible", 10.0), ["indivisible"]);
    }

    fn bars(values: &[f64], stacked: bool) -> String {
        let bar = |&value: &f64| Bar {
            name: "bar".to_owned(),
            colour: 0,
            stroke: Stroke::Plain,
            value,
            range: None,
            says: value.to_string(),
        };
        let y = Axis::linear("KB", [20.0].into_iter(), short_number);
        let groups =
            vec![Group { label: "one".to_owned(), bars: values.iter().map(bar).collect() }];
        Bars { description: "", label: "", y, groups, stacked }.svg()
    }

    /// Returns that attribute of each bar.
    fn each(svg: &str, attribute: &str) -> Vec<f64> {
        let start = format!(" {attribute}=\"");
        let bars = svg.split("<rect ").skip(1).map(|bar| bar.split_once(&start).unwrap().1);
        bars.map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn bars_are_as_high_as_their_values() {
        let heights = each(&bars(&[5.0, 10.0], false), "height");
        assert!((heights[1] / heights[0] - 2.0).abs() < 1e-9, "{heights:?}");
    }

    #[test]
    fn stacked_bars_touch_each_other() {
        let svg = bars(&[5.0, 10.0], true);
        let (top, high, left) = (each(&svg, "y"), each(&svg, "height"), each(&svg, "x"));
        assert!((top[1] + high[1] - top[0]).abs() < 0.11, "{top:?} {high:?}");
        assert_eq!(left[0], left[1]);
    }
}
