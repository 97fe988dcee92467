//! How does a line chart look?

use std::borrow::Cow;
use std::fmt::{self, Write};

use minijinja::HtmlEscape;

use super::{Axis, BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, draw_y, label_x, open, place_y};

/// Lines over two axes.
#[derive(Clone, Debug)]
pub struct Chart<'a> {
    /// What it shows, for those who cannot see it.
    pub description: &'a str,
    /// The level axis.
    pub x: Axis<'a>,
    /// The upright axis.
    pub y: Axis<'a>,
    /// What is drawn.
    pub lines: Vec<Line<'a>>,
}

/// Points that are connected.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// Number of the contender, which gives the colour.
    pub colour: usize,
    /// How it is drawn.
    pub look: Look,
    /// The points, in order.
    pub points: Vec<Point<'a>>,
}

/// How a line or a bar is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Solid: what this is about.
    Plain,
    /// Thin and dashed: something to compare it with.
    Faint,
    /// Thinner still and dotted, without points.
    Dotted,
}

/// A point, and what is said about it when somebody points at it.
#[derive(Clone, Debug)]
pub struct Point<'a> {
    /// Where it is on the level axis.
    pub x: f64,
    /// Where it is on the upright axis.
    pub y: f64,
    /// What is said about it.
    pub title: Cow<'a, str>,
}

impl Look {
    /// The class, with a space before it.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Faint => " faint",
            Self::Dotted => " dotted",
        }
    }
}

impl Chart<'_> {
    /// The chart as an `svg` element.
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

    fn draw(&self, to: &mut String) -> fmt::Result {
        open(to, self.description)?;
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
        let (colour, look) = (line.colour, line.look.class());
        write!(to, r#"<polyline class="c{colour}{look}" points=""#)?;
        for point in &line.points {
            write!(to, "{:.1},{:.1} ", self.place_x(point.x), place_y(&self.y, point.y))?;
        }
        writeln!(to, r#""/>"#)?;
        for point in &line.points {
            let (x, y) = (self.place_x(point.x), place_y(&self.y, point.y));
            let title = HtmlEscape(&point.title);
            writeln!(
                to,
                r#"<circle class="c{colour}{look}" cx="{x:.1}" cy="{y:.1}" r="3"><title>{title}</title></circle>"#
            )?;
        }
        Ok(())
    }

    fn place_x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }
}
