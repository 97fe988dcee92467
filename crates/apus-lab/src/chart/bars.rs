//! How does a bar chart look?

use std::fmt::{self, Write};

use minijinja::HtmlEscape;

use super::{Axis, BOTTOM, HEIGHT, LEFT, Look, RIGHT, WIDTH, draw_y, label_x, open, place_y};
use crate::result::table::short;

/// Groups of bars over an upright axis.
#[derive(Clone, Debug)]
pub struct Bars<'a> {
    /// What it shows, for those who cannot see it.
    pub description: &'a str,
    /// What the groups are.
    pub label: &'a str,
    /// The upright axis.
    pub y: Axis<'a>,
    /// From left to right.
    pub groups: Vec<Group>,
}

/// Bars that stand together.
#[derive(Clone, Debug)]
pub struct Group {
    /// What they are about.
    pub label: String,
    /// From left to right.
    pub bars: Vec<Bar>,
}

/// A bar, and what is said about it when somebody points at it.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Number of the contender, which gives the colour.
    pub colour: usize,
    /// How it is drawn.
    pub look: Look,
    /// How high it is.
    pub value: f64,
    /// What is said about it.
    pub title: String,
}

/// Share of a group's width that stays free, and the greatest width of a bar.
const GAP: f64 = 0.28;
const WIDEST: f64 = 46.0;
/// Narrower bars have no room for their value.
const LABELLED: f64 = 26.0;

/// Distance between two lines of text, and the width of a letter, more or less.
const LINE: f64 = 13.0;
const LETTER: f64 = 6.5;

/// A label, in two lines if one is too long for its group.
fn lines_of(label: &str, width: f64) -> Vec<&str> {
    if label.chars().count() as f64 * LETTER <= width {
        return vec![label];
    }
    // Where both halves are about as long.
    let middle = label.len() / 2;
    let space = label.match_indices(' ').min_by_key(|(at, _)| at.abs_diff(middle));
    match space {
        Some((at, _)) => vec![&label[..at], &label[at + 1..]],
        None => vec![label],
    }
}

impl Bars<'_> {
    /// The chart as an `svg` element.
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

    fn draw(&self, to: &mut String) -> fmt::Result {
        open(to, self.description)?;
        draw_y(to, &self.y)?;
        let width = (WIDTH - LEFT - RIGHT) / self.groups.len().max(1) as f64;
        for (index, group) in self.groups.iter().enumerate() {
            self.draw_group(group, LEFT + width * index as f64, width, to)?;
        }
        label_x(to, self.label)?;
        writeln!(to, "</svg>")
    }

    fn draw_group(&self, group: &Group, left: f64, width: f64, to: &mut String) -> fmt::Result {
        let middle = left + width / 2.0;
        for (line, part) in lines_of(&group.label, width).into_iter().enumerate() {
            let y = HEIGHT - BOTTOM + 16.0 + LINE * line as f64;
            let part = HtmlEscape(part);
            writeln!(to, r#"<text x="{middle:.1}" y="{y}" text-anchor="middle">{part}</text>"#)?;
        }
        let each = (width * (1.0 - GAP) / group.bars.len().max(1) as f64).min(WIDEST);
        let first = middle - each * group.bars.len() as f64 / 2.0;
        for (index, bar) in group.bars.iter().enumerate() {
            self.draw_bar(bar, first + each * index as f64, each, to)?;
        }
        Ok(())
    }

    fn draw_bar(&self, bar: &Bar, left: f64, width: f64, to: &mut String) -> fmt::Result {
        let Bar { colour, look, value, title } = bar;
        let (top, bottom) = (place_y(&self.y, *value), HEIGHT - BOTTOM);
        let (x, wide, high) = (left + 1.0, width - 2.0, (bottom - top).max(0.5));
        let (look, title) = (look.class(), HtmlEscape(title));
        writeln!(
            to,
            r#"<rect class="c{colour}{look}" x="{x:.1}" y="{top:.1}" width="{wide:.1}" height="{high:.1}" rx="2"><title>{title}</title></rect>"#
        )?;
        if width >= LABELLED {
            let (x, y, value) = (left + width / 2.0, top - 4.0, short(*value));
            writeln!(
                to,
                r#"<text class="value" x="{x:.1}" y="{y:.1}" text-anchor="middle">{value}</text>"#
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Scale, short_number, steps};

    #[test]
    fn long_labels_have_two_lines() {
        assert_eq!(lines_of("w2 load=0.8", 100.0), ["w2 load=0.8"]);
        assert_eq!(lines_of("w2 load=0.8 window=1", 100.0), ["w2 load=0.8", "window=1"]);
        assert_eq!(lines_of("indivisible", 10.0), ["indivisible"]);
    }

    #[test]
    fn bars_are_as_high_as_their_values() {
        let bar = |value| Bar { colour: 0, look: Look::Plain, value, title: "bar".to_owned() };
        let y = Axis { label: "KB", scale: Scale::Linear, ticks: steps(10.0, short_number) };
        let groups = vec![Group { label: "one".to_owned(), bars: vec![bar(5.0), bar(10.0)] }];
        let svg = Bars { description: "", label: "", y, groups }.svg();
        let heights: Vec<f64> = svg
            .split("height=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(heights.len(), 2);
        assert!((heights[1] / heights[0] - 2.0).abs() < 1e-9, "{heights:?}");
    }
}
