//! Charts as separate files.

use std::fmt::{self, Write};

use minijinja::HtmlEscape;

use super::assets::STYLE;
use super::frame::{HEIGHT, LEFT, WIDTH};

/// The texts around a chart in a separate file.
pub(super) struct Words<'a> {
    pub(super) title: &'a str,
    /// Class and name of each kind of element.
    pub(super) legend: &'a [(String, String)],
    /// Paragraphs below the chart.
    pub(super) below: &'a [&'a str],
}

/// Returns a chart as a separate file with its style sheet. `svg` is the result of a chart's `svg`
/// method.
pub(super) fn standalone(svg: &str, words: &Words<'_>) -> String {
    let inner = svg.split_once('>').map_or(svg, |(_, inner)| inner);
    let mut to = String::new();
    frame(&mut to, inner, words).expect("writing to a string");
    to
}

/// Height of the title and of one row of names, and of each further row.
const HEAD: f64 = 56.0;
const ROW: f64 = 18.0;

/// Height of a line of text below the chart, and its number of characters.
const LINE: f64 = 17.0;
const LINE_LENGTH: usize = 118;

/// Returns the positions of the names of the legend, in rows.
fn places(legend: &[(String, String)]) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (LEFT, 40.0);
    let mut places = Vec::new();
    for (_, name) in legend {
        let width = 46.0 + 7.0 * name.chars().count() as f64;
        if x > LEFT && x + width > WIDTH {
            (x, y) = (LEFT, y + ROW);
        }
        places.push((x, y));
        x += width;
    }
    places
}

/// Returns the paragraph in lines of at most [`LINE_LENGTH`] characters; a longer word has a
/// separate line.
fn lines(paragraph: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in paragraph.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= LINE_LENGTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn frame(to: &mut String, inner: &str, words: &Words<'_>) -> fmt::Result {
    let Words { title, legend, below } = words;
    let places = places(legend);
    let head = HEAD + places.last().map_or(0.0, |(_, y)| y - 40.0);
    let below: Vec<String> = below.iter().flat_map(|paragraph| lines(paragraph)).collect();
    let foot = if below.is_empty() { 0.0 } else { LINE * (below.len() as f64 + 1.0) };
    let height = HEIGHT + head + foot;
    writeln!(
        to,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" font-family="system-ui, sans-serif">"#
    )?;
    // The style sheet addresses the root, which is the picture in a separate file.
    writeln!(to, "<style>\n{STYLE}</style>")?;
    writeln!(to, r#"<rect width="{WIDTH}" height="{height}" fill="var(--paper)"/>"#)?;
    writeln!(to, r#"<text class="axis" x="{LEFT}" y="22">{}</text>"#, HtmlEscape(title))?;
    for ((class, name), (x, y)) in legend.iter().zip(places) {
        let (end, text, base) = (x + 22.0, x + 28.0, y + 4.0);
        writeln!(to, r#"<polyline class="{class}" points="{x},{y} {end},{y}"/>"#)?;
        writeln!(to, r#"<text x="{text}" y="{base}">{}</text>"#, HtmlEscape(name))?;
    }
    for (index, line) in below.iter().enumerate() {
        let y = HEIGHT + head + LINE * (index as f64 + 1.0);
        writeln!(to, r#"<text x="{LEFT}" y="{y}">{}</text>"#, HtmlEscape(line))?;
    }
    writeln!(to, r#"<g transform="translate(0 {head})">"#)?;
    to.push_str(inner.trim_end().trim_end_matches("</svg>"));
    writeln!(to, "</g>\n</svg>")
}

#[cfg(test)]
mod tests {
    use super::{LINE_LENGTH, lines, places};
    use crate::chart::{Axis, Chart, Line, Plot, Point, Stroke, short_number};

    #[test]
    fn a_chart_is_a_complete_file() {
        let axis = |label| Axis::linear(label, [1.0].into_iter(), short_number);
        let point = Point { x: 0.5, y: 0.5, range: None, at: "here".into(), says: "half".into() };
        let line =
            Line { name: "one".into(), colour: 1, stroke: Stroke::Plain, points: vec![point] };
        let lines = vec![line];
        let chart = Chart { description: "<a>", x: axis("x"), y: axis("y & z"), lines };
        let plot = Plot::of_lines("name", "title", "a < b", &chart);
        let (name, svg) = plot.file("w2 load=0.8", "source & commit");
        assert_eq!(name, "name-w2-load-0.8.svg");
        assert!(svg.contains(">title: w2 load=0.8</text>") && svg.contains(">one</text>"), "{svg}");
        assert_eq!(svg.matches("<svg ").count(), 1);
        assert_eq!(svg.matches("</svg>").count(), 1);
        assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count());
        assert!(svg.contains("y &amp; z") && svg.contains("half"));
        assert!(svg.contains(">a &lt; b</text>") && svg.contains(">source &amp; commit</text>"));
    }

    #[test]
    fn a_long_legend_has_several_rows() {
        let name = |length: usize| (String::new(), "x".repeat(length));
        let rows = |lengths: &[usize]| {
            let legend: Vec<_> = lengths.iter().map(|length| name(*length)).collect();
            places(&legend).into_iter().map(|(_, y)| y).collect::<Vec<_>>()
        };
        assert_eq!(rows(&[10; 6]), [40.0; 6]);
        assert_eq!(rows(&[40, 40, 40, 10]), [40.0, 40.0, 58.0, 58.0]);
        assert_eq!(rows(&[1000, 10]), [40.0, 58.0], "a name that never fits has a separate row");
    }

    #[test]
    fn a_long_paragraph_has_several_lines() {
        let text = "seven letters and more ".repeat(20);
        let found = lines(&text);
        assert!(found.iter().all(|line| line.chars().count() <= LINE_LENGTH), "{found:?}");
        assert_eq!((found.len(), found.join(" ")), (4, text.trim_end().to_owned()));
        let long = "x".repeat(2 * LINE_LENGTH);
        assert_eq!(lines(&format!("a {long} b")), ["a", &long, "b"]);
        assert!(lines("").is_empty());
    }
}
