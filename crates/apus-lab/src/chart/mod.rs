//! How do figures look as inline SVG?
//!
//! Hand-made rather than plotted by a library, because a page has to be light or dark as its reader
//! likes: every colour is a class whose value [`STYLE`] gives, and text is the browser's.

mod axis;
mod bars;
mod lines;

pub use axis::{Axis, Scale, bytes, decades, short_number, steps};
pub use bars::{Bar, Bars, Group};
pub use lines::{Chart, Line, Look, Point};

use std::fmt::{self, Write};

use minijinja::HtmlEscape;

/// Colours in light and in dark, and how the classes of a chart are drawn. A page puts it into its style
/// sheet.
pub const STYLE: &str = include_str!("style.css");

/// Size of a picture and of its margins, in units that the browser scales.
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 32.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 52.0;

/// A chart as a file of its own: with its style sheet, a title, and the names of its colours.
///
/// `svg` is what a chart's `svg` method gives; `names` are the class of each colour and what it stands for.
#[must_use]
pub fn standalone(svg: &str, title: &str, names: &[(String, String)]) -> String {
    let inner = svg.split_once('>').map_or(svg, |(_, inner)| inner);
    let mut to = String::new();
    frame(&mut to, inner, title, names).expect("writing to a string");
    to
}

fn frame(to: &mut String, inner: &str, title: &str, names: &[(String, String)]) -> fmt::Result {
    const HEAD: f64 = 56.0;
    let height = HEIGHT + HEAD;
    writeln!(
        to,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" font-family="system-ui, sans-serif">"#
    )?;
    // In a file of its own the picture is the root, which the style sheet calls so.
    writeln!(to, "<style>\n{STYLE}</style>")?;
    writeln!(to, r#"<rect width="{WIDTH}" height="{height}" fill="var(--paper)"/>"#)?;
    writeln!(to, r#"<text class="axis" x="{LEFT}" y="22">{}</text>"#, HtmlEscape(title))?;
    let mut x = LEFT;
    for (class, name) in names {
        let (end, text) = (x + 22.0, x + 28.0);
        writeln!(to, r#"<polyline class="{class}" points="{x},40 {end},40"/>"#)?;
        writeln!(to, r#"<text x="{text}" y="44">{}</text>"#, HtmlEscape(name))?;
        x = text + 18.0 + 7.0 * name.chars().count() as f64;
    }
    writeln!(to, r#"<g transform="translate(0 {HEAD})">"#)?;
    to.push_str(inner.trim_end().trim_end_matches("</svg>"));
    writeln!(to, "</g>\n</svg>")
}

/// The beginning of a picture.
fn open(to: &mut String, description: &str) -> fmt::Result {
    let description = HtmlEscape(description);
    writeln!(to, r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{description}">"#)
}

/// Where a value of an upright axis is.
fn place_y(axis: &Axis<'_>, value: f64) -> f64 {
    HEIGHT - BOTTOM - axis.place(value) * (HEIGHT - TOP - BOTTOM)
}

/// The upright axis: a line for each tick, labels, what it means.
fn draw_y(to: &mut String, axis: &Axis<'_>) -> fmt::Result {
    let (left, right) = (LEFT, WIDTH - RIGHT);
    for (value, label) in &axis.ticks {
        let y = place_y(axis, *value);
        writeln!(to, r#"<line class="grid" x1="{left}" x2="{right}" y1="{y:.1}" y2="{y:.1}"/>"#)?;
        let (x, y) = (left - 8.0, y + 4.0);
        let label = HtmlEscape(label);
        writeln!(to, r#"<text x="{x}" y="{y:.1}" text-anchor="end">{label}</text>"#)?;
    }
    let y = TOP + (HEIGHT - TOP - BOTTOM) / 2.0;
    let label = HtmlEscape(axis.label);
    writeln!(
        to,
        r#"<text class="axis" transform="translate(14 {y}) rotate(-90)" text-anchor="middle">{label}</text>"#
    )
}

/// What the level axis means.
fn label_x(to: &mut String, label: &str) -> fmt::Result {
    let (x, y) = (LEFT + (WIDTH - LEFT - RIGHT) / 2.0, HEIGHT - 10.0);
    let label = HtmlEscape(label);
    writeln!(to, r#"<text class="axis" x="{x}" y="{y}" text-anchor="middle">{label}</text>"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_a_file_of_its_own() {
        let axis = |label| Axis { label, scale: Scale::Linear, ticks: steps(1.0, short_number) };
        let point = Point { x: 0.5, y: 0.5, title: "half".into() };
        let line = Line { colour: 1, look: Look::Plain, points: vec![point] };
        let lines = vec![line];
        let chart = Chart { description: "<a>", x: axis("x"), y: axis("y & z"), lines };
        let names = [("c1".to_owned(), "one".to_owned())];
        let svg = standalone(&chart.svg(), "title", &names);
        assert_eq!(svg.matches("<svg ").count(), 1);
        assert_eq!(svg.matches("</svg>").count(), 1);
        assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count());
        assert!(svg.contains("y &amp; z") && svg.contains("half"));
    }
}
