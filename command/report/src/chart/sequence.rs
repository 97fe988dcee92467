//! Time-sequence diagrams, as in books on protocols.
//!
//! Time runs downwards between two vertical lines, one per side; each arrow is a packet. Distances
//! show the order of packets; their times are labels, since no scale could show both a pause of 44
//! ms and an exchange of 6 µs. A long pause breaks the lines and is labelled with its length.

use std::fmt::{self, Write};

use minijinja::HtmlEscape;

use super::axis::micros;
use super::frame::{HEIGHT, WIDTH, open_as_high};
use super::stroke::{Stroke, class, legend};

/// Exchanges between two sides, drawn next to each other.
#[derive(Clone, Debug)]
pub struct Sequences<'a> {
    /// Description for screen readers.
    pub description: &'a str,
    /// Names of the left and the right side.
    pub sides: [&'a str; 2],
    /// From left to right; at most [`Sequences::MOST`] are drawn.
    pub exchanges: Vec<Sequence>,
}

/// The packets of one exchange.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Title of the exchange.
    pub title: String,
    /// Packets in the order of sending.
    pub arrows: Vec<Arrow>,
}

/// A packet.
#[derive(Clone, Debug)]
pub struct Arrow {
    /// Time in microseconds.
    pub at: f64,
    /// Whether it points to the right.
    pub forth: bool,
    /// Label.
    pub label: String,
    /// Name of its kind in the legend. Arrows of one name are shown and hidden together.
    pub name: &'static str,
    /// Number of the kind, which gives the colour.
    pub colour: usize,
    /// Style of the arrow.
    pub stroke: Stroke,
}

/// Vertical positions of titles, sides and the first arrow, and the lowest position of the last
/// arrow.
const TITLE: f64 = 16.0;
const SIDES: f64 = 38.0;
const FIRST: f64 = 64.0;
const LAST: f64 = HEIGHT - 16.0;

/// Width for times at the left and at the right of the lines.
const TIMES: f64 = 62.0;

/// Greatest distance between two arrows, and the slope of an arrow.
const STEP: f64 = 44.0;
const SLOPE: f64 = 8.0;

/// Microseconds of a long pause.
const LONG: f64 = 1_000.0;

impl Sequences<'_> {
    /// Most exchanges in a drawing.
    pub const MOST: usize = 3;

    /// Returns the drawing as an `svg` element.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut svg = String::new();
        self.draw(&mut svg).expect("writing to a string");
        svg
    }

    /// Returns class and name of the arrows, each name once.
    #[must_use]
    pub fn legend(&self) -> Vec<(String, String)> {
        let arrows = self.exchanges.iter().flat_map(|exchange| &exchange.arrows);
        legend(arrows.map(|arrow| (arrow.colour, arrow.stroke, arrow.name)))
    }

    fn draw(&self, to: &mut String) -> fmt::Result {
        let height = self.exchanges.iter().map(Sequence::height).fold(0.0, f64::max);
        open_as_high(to, self.description, "sequence", height)?;
        let width = WIDTH / Self::MOST as f64;
        for (index, exchange) in self.exchanges.iter().take(Self::MOST).enumerate() {
            let left = width * index as f64;
            let lines = SideLines { left: left + TIMES, right: left + width - TIMES };
            self.draw_sides(exchange, &lines, to)?;
            exchange.draw(&lines, to)?;
        }
        writeln!(to, "</svg>")
    }

    fn draw_sides(&self, exchange: &Sequence, lines: &SideLines, to: &mut String) -> fmt::Result {
        let (middle, title) = (lines.middle(), HtmlEscape(&exchange.title));
        writeln!(
            to,
            r#"<text class="axis" x="{middle:.1}" y="{TITLE}" text-anchor="middle">{title}</text>"#
        )?;
        for (x, side) in [lines.left, lines.right].into_iter().zip(self.sides) {
            let side = HtmlEscape(side);
            writeln!(to, r#"<text x="{x:.1}" y="{SIDES}" text-anchor="middle">{side}</text>"#)?;
        }
        Ok(())
    }
}

/// Horizontal positions of the two sides of an exchange.
struct SideLines {
    left: f64,
    right: f64,
}

impl SideLines {
    fn middle(&self) -> f64 {
        f64::midpoint(self.left, self.right)
    }

    /// Draws both lines between two vertical positions.
    fn draw(&self, from: f64, until: f64, to: &mut String) -> fmt::Result {
        for x in [self.left, self.right] {
            writeln!(
                to,
                r#"<line class="grid" x1="{x:.1}" x2="{x:.1}" y1="{from:.1}" y2="{until:.1}"/>"#
            )?;
        }
        Ok(())
    }
}

impl Sequence {
    /// Returns whether there is a long pause before that arrow.
    fn is_long_before(&self, index: usize) -> bool {
        index > 0 && self.arrows[index].at - self.arrows[index - 1].at >= LONG
    }

    /// Returns the number of arrows and long pauses.
    fn rows(&self) -> f64 {
        let breaks = (0..self.arrows.len()).filter(|index| self.is_long_before(*index)).count();
        (self.arrows.len() + breaks).max(2) as f64
    }

    /// Returns the distance between two arrows.
    fn step(&self) -> f64 {
        STEP.min((LAST - FIRST) / self.rows())
    }

    fn height(&self) -> f64 {
        FIRST + self.step() * self.rows()
    }

    fn draw(&self, lines: &SideLines, to: &mut String) -> fmt::Result {
        let step = self.step();
        let (mut y, mut from) = (FIRST, SIDES + 6.0);
        for (index, arrow) in self.arrows.iter().enumerate() {
            if self.is_long_before(index) {
                lines.draw(from, y - step / 2.0, to)?;
                let pause = micros(arrow.at - self.arrows[index - 1].at);
                let (x, middle) = (lines.middle(), y + 4.0);
                writeln!(
                    to,
                    r#"<text class="axis" x="{x:.1}" y="{middle:.1}" text-anchor="middle">⋮ {pause} ⋮</text>"#
                )?;
                from = y + step / 2.0;
                y += step;
            }
            arrow.draw(lines, y, to)?;
            y += step;
        }
        lines.draw(from, y - step + SLOPE + 10.0, to)
    }
}

impl Arrow {
    fn draw(&self, lines: &SideLines, y: f64, to: &mut String) -> fmt::Result {
        const HEAD: f64 = 7.0;
        let (from, until, back) = if self.forth {
            (lines.left, lines.right, -HEAD)
        } else {
            (lines.right, lines.left, HEAD)
        };
        let (class, name, end) = (class(self.colour, self.stroke), self.name, y + SLOPE);
        let (neck, above, below) = (until + back, end - 4.5, end + 3.5);
        writeln!(
            to,
            r#"<g data-name="{name}"><polyline class="{class}" points="{from:.1},{y:.1} {until:.1},{end:.1} {neck:.1},{above:.1} {until:.1},{end:.1} {neck:.1},{below:.1}"/>"#
        )?;
        let (middle, over, label) = (lines.middle(), y - 2.0, HtmlEscape(&self.label));
        writeln!(to, r#"<text x="{middle:.1}" y="{over:.1}" text-anchor="middle">{label}</text>"#)?;
        let (x, anchor) = if self.forth { (from - 6.0, "end") } else { (from + 6.0, "start") };
        let (base, time) = (y + 4.0, micros(self.at));
        writeln!(
            to,
            r#"<text class="value" x="{x:.1}" y="{base:.1}" text-anchor="{anchor}">{time}</text></g>"#
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrow(at: f64, forth: bool, label: &str) -> Arrow {
        let label = label.to_owned();
        Arrow { at, forth, label, name: "command", colour: 0, stroke: Stroke::Plain }
    }

    fn drawn(arrows: Vec<Arrow>) -> String {
        let exchanges = vec![Sequence { title: "a <title>".to_owned(), arrows }];
        Sequences { description: "it", sides: ["client", "server"], exchanges }.svg()
    }

    #[test]
    fn arrows_point_both_ways_and_start_at_their_times() {
        let svg = drawn(vec![arrow(0.0, true, "4 bytes"), arrow(12.5, false, "ACK")]);
        assert!(svg.contains(r#"text-anchor="end">0 us</text>"#), "{svg}");
        assert!(svg.contains(r#"text-anchor="start">12.5 us</text>"#), "{svg}");
        assert!(svg.contains("a &lt;title&gt;") && svg.contains(">server</text>"), "{svg}");
        assert!(!svg.contains('⋮'));
    }

    #[test]
    fn a_long_pause_is_labelled_and_breaks_the_lines() {
        let svg = drawn(vec![arrow(0.0, true, "4 bytes"), arrow(44_000.0, false, "ACK")]);
        assert!(svg.contains("⋮ 44 ms ⋮"), "{svg}");
        assert_eq!(svg.matches("<line ").count(), 4);
    }

    /// All ends of arrows are inside the drawing.
    #[test]
    fn many_arrows_stay_in_the_drawing() {
        let svg = drawn((0..20).map(|at| arrow(f64::from(at) * 2_000.0, true, "x")).collect());
        let points = svg.split("points=\"").skip(1).filter_map(|it| it.split('"').next());
        for point in points.flat_map(str::split_whitespace) {
            let (x, y) = point.split_once(',').unwrap();
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((0.0..=WIDTH).contains(&x) && (0.0..=HEIGHT).contains(&y), "{point}");
        }
        assert!(drawn(Vec::new()).contains("</svg>"), "an empty drawing is valid");
    }
}
