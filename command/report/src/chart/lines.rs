//! Line charts.

use std::borrow::Cow;
use std::fmt::{self, Write};

use minijinja::HtmlEscape;

use super::axis::Axis;
use super::frame::{BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH};
use super::frame::{draw_y, label_x, open, place_y, whisker};
use super::stroke::{Stroke, class, legend};

/// Lines over two axes.
#[derive(Clone, Debug)]
pub struct Chart<'a> {
    /// Description for screen readers.
    pub description: &'a str,
    /// The horizontal axis.
    pub x: Axis<'a>,
    /// The vertical axis.
    pub y: Axis<'a>,
    /// The lines.
    pub lines: Vec<Line<'a>>,
}

/// Points that are connected.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// Name in the legend. Lines of one name are shown and hidden together.
    pub name: Cow<'a, str>,
    /// Number of the contender, which gives the colour.
    pub colour: usize,
    /// Style of the line.
    pub stroke: Stroke,
    /// The points, in order.
    pub points: Vec<Point<'a>>,
}

/// A point, and the text for a pointer.
#[derive(Clone, Debug)]
pub struct Point<'a> {
    /// Value on the horizontal axis.
    pub x: f64,
    /// Value on the vertical axis.
    pub y: f64,
    /// Least and greatest value over the runs, drawn as a whisker.
    pub range: Option<(f64, f64)>,
    /// Subject, like `up to 1 kB`. A pointer shows the points of all lines with the same subject.
    pub at: Cow<'a, str>,
    /// Text for a pointer, like `p99 5.12`.
    pub says: Cow<'a, str>,
}

impl Chart<'_> {
    /// Returns the chart as an `svg` element.
    ///
    /// # Panics
    ///
    /// If an axis has fewer than two ticks.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut svg = String::new();
        self.draw(&mut svg).expect("writing to a string");
        svg
    }

    /// Returns class and name of the lines, each name once.
    #[must_use]
    pub fn legend(&self) -> Vec<(String, String)> {
        legend(self.lines.iter().map(|line| (line.colour, line.stroke, &line.name[..])))
    }

    fn draw(&self, to: &mut String) -> fmt::Result {
        open(to, self.description, "lines")?;
        self.draw_x(to)?;
        draw_y(to, &self.y)?;
        for line in &self.lines {
            self.draw_line(line, to)?;
        }
        writeln!(to, "</svg>")
    }

    fn draw_x(&self, to: &mut String) -> fmt::Result {
        let (top, bottom) = (TOP, HEIGHT - BOTTOM);
        for (value, label) in &self.x.ticks {
            let x = self.place_x(*value);
            writeln!(
                to,
                r#"<line class="grid" x1="{x:.1}" x2="{x:.1}" y1="{top}" y2="{bottom}"/>"#
            )?;
            let y = bottom + 18.0;
            let label = HtmlEscape(label);
            writeln!(to, r#"<text x="{x:.1}" y="{y}" text-anchor="middle">{label}</text>"#)?;
        }
        label_x(to, self.x.label)
    }

    fn draw_line(&self, line: &Line<'_>, to: &mut String) -> fmt::Result {
        let class = class(line.colour, line.stroke);
        let name = HtmlEscape(&line.name);
        write!(to, r#"<g data-name="{name}"><polyline class="{class}" points=""#)?;
        for point in &line.points {
            write!(to, "{:.1},{:.1} ", self.place_x(point.x), place_y(&self.y, point.y))?;
        }
        writeln!(to, r#""/>"#)?;
        for point in &line.points {
            let (x, y) = (self.place_x(point.x), place_y(&self.y, point.y));
            if let Some(range) = point.range {
                whisker(to, &self.y, &class, x, range)?;
            }
            let (at, says, value) = (HtmlEscape(&point.at), HtmlEscape(&point.says), point.y);
            writeln!(
                to,
                r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="3" data-y="{value}" data-at="{at}" data-says="{says}"><title>{name}, {at}: {says}</title></circle>"#
            )?;
        }
        writeln!(to, "</g>")
    }

    fn place_x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }
}
