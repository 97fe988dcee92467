//! How does a line chart look as inline SVG?
//!
//! Hand-made rather than plotted by a library, because the page has to be light or dark as its reader
//! likes: every colour is a class whose value the page's style sheet gives, and text is the
//! browser's.

use std::fmt::Write;

use minijinja::HtmlEscape;

/// Lines over two axes.
pub(super) struct Chart<'a> {
    /// What it shows, for those who cannot see it.
    pub(super) description: &'a str,
    pub(super) x: Axis<'a>,
    pub(super) y: Axis<'a>,
    pub(super) lines: Vec<Line<'a>>,
}

/// An axis from the first to the last tick.
pub(super) struct Axis<'a> {
    pub(super) label: &'a str,
    pub(super) scale: Scale,
    /// Values at which a line is drawn, and their labels. At least two, ascending.
    pub(super) ticks: Vec<(f64, String)>,
}

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// Equal factors are equally far apart.
    Logarithmic,
    /// Shares from 0 to below 1: 0.9, 0.99 and 0.999 are equally far apart.
    Nines,
}

/// Points that are connected.
pub(super) struct Line<'a> {
    /// Number of the contender, which gives the colour.
    pub(super) colour: usize,
    /// Whether the line is thin and dashed.
    pub(super) faint: bool,
    pub(super) points: Vec<Point<'a>>,
}

/// A point, and what is said about it when somebody points at it.
pub(super) struct Point<'a> {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) title: std::borrow::Cow<'a, str>,
}

/// Size of the picture and of its margins, in units that the browser scales.
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 32.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 52.0;

impl Chart<'_> {
    /// The chart as an `svg` element.
    pub(super) fn svg(&self) -> String {
        let mut svg = String::new();
        self.draw(&mut svg).expect("writing to a string");
        svg
    }

    fn draw(&self, to: &mut String) -> std::fmt::Result {
        let description = HtmlEscape(self.description);
        writeln!(
            to,
            r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{description}">"#
        )?;
        self.draw_x(to)?;
        self.draw_y(to)?;
        for line in &self.lines {
            self.draw_line(line, to)?;
        }
        writeln!(to, "</svg>")
    }

    fn draw_x(&self, to: &mut String) -> std::fmt::Result {
        let (top, bottom) = (TOP, HEIGHT - BOTTOM);
        for (value, label) in &self.x.ticks {
            let x = self.place_x(*value);
            writeln!(
                to,
                r#"<line class="grid" x1="{x:.1}" x2="{x:.1}" y1="{top}" y2="{bottom}"/>"#
            )?;
            let y = bottom + 18.0;
            writeln!(to, r#"<text x="{x:.1}" y="{y}" text-anchor="middle">{label}</text>"#)?;
        }
        let (x, y) = (LEFT + (WIDTH - LEFT - RIGHT) / 2.0, HEIGHT - 10.0);
        let label = HtmlEscape(self.x.label);
        writeln!(to, r#"<text class="axis" x="{x}" y="{y}" text-anchor="middle">{label}</text>"#)
    }

    fn draw_y(&self, to: &mut String) -> std::fmt::Result {
        let (left, right) = (LEFT, WIDTH - RIGHT);
        for (value, label) in &self.y.ticks {
            let y = self.place_y(*value);
            writeln!(
                to,
                r#"<line class="grid" x1="{left}" x2="{right}" y1="{y:.1}" y2="{y:.1}"/>"#
            )?;
            let (x, y) = (left - 8.0, y + 4.0);
            writeln!(to, r#"<text x="{x}" y="{y:.1}" text-anchor="end">{label}</text>"#)?;
        }
        let y = TOP + (HEIGHT - TOP - BOTTOM) / 2.0;
        let label = HtmlEscape(self.y.label);
        writeln!(
            to,
            r#"<text class="axis" transform="translate(14 {y}) rotate(-90)" text-anchor="middle">{label}</text>"#
        )
    }

    fn draw_line(&self, line: &Line<'_>, to: &mut String) -> std::fmt::Result {
        let colour = line.colour;
        let faint = if line.faint { " faint" } else { "" };
        write!(to, r#"<polyline class="c{colour}{faint}" points=""#)?;
        for point in &line.points {
            write!(to, "{:.1},{:.1} ", self.place_x(point.x), self.place_y(point.y))?;
        }
        writeln!(to, r#""/>"#)?;
        for point in &line.points {
            let (x, y) = (self.place_x(point.x), self.place_y(point.y));
            let title = HtmlEscape(&point.title);
            writeln!(
                to,
                r#"<circle class="c{colour}{faint}" cx="{x:.1}" cy="{y:.1}" r="3"><title>{title}</title></circle>"#
            )?;
        }
        Ok(())
    }

    fn place_x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn place_y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.place(value) * (HEIGHT - TOP - BOTTOM)
    }
}

impl Axis<'_> {
    /// Where a value is between the first tick (0) and the last one (1); beyond them, at their place.
    fn place(&self, value: f64) -> f64 {
        let at = |value| self.scale.stretch(value);
        let (first, last) = (at(self.ticks[0].0), at(self.ticks[self.ticks.len() - 1].0));
        ((at(value) - first) / (last - first)).clamp(0.0, 1.0)
    }
}

impl Scale {
    /// Equal distances on the axis are equal differences of this.
    fn stretch(self, value: f64) -> f64 {
        match self {
            Self::Logarithmic => value.max(f64::MIN_POSITIVE).ln(),
            Self::Nines => -(1.0 - value).max(f64::EPSILON).ln(),
        }
    }
}

/// Ticks of a logarithmic axis that holds all `values`: powers of ten, with 2 and 5 between them if
/// there would be few.
pub(super) fn decades(
    values: impl Iterator<Item = f64>,
    label: fn(f64) -> String,
) -> Vec<(f64, String)> {
    let (mut least, mut greatest) = (f64::INFINITY, 0f64);
    for value in values.filter(|value| value.is_finite() && *value > 0.0) {
        least = least.min(value);
        greatest = greatest.max(value);
    }
    if greatest == 0.0 {
        (least, greatest) = (1.0, 10.0);
    }
    let few = greatest / least < 100.0;
    let steps: &[f64] = if few { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let powers = (least.log10().floor() as i32)..=(greatest.log10().ceil() as i32);
    let ticks: Vec<f64> =
        powers.flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power))).collect();
    // From the last tick that is not above the least value to the first that is not below the greatest.
    let first = ticks.iter().rposition(|&tick| tick <= least).unwrap_or(0);
    let last = ticks.iter().position(|&tick| tick >= greatest).unwrap_or(ticks.len() - 1);
    let last = last.max(first + 1).min(ticks.len() - 1);
    ticks[first.min(last - 1)..=last].iter().map(|&tick| (tick, label(tick))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(values: &[f64]) -> Vec<f64> {
        decades(values.iter().copied(), |value| value.to_string())
            .into_iter()
            .map(|(value, _)| value)
            .collect()
    }

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a / b - 1.0).abs() < 1e-9)
    }

    #[test]
    fn ticks_enclose_the_values() {
        assert!(close(&ticks(&[66.0, 1e6]), &[10.0, 100.0, 1e3, 1e4, 1e5, 1e6]));
        assert!(close(&ticks(&[1.3, 14.0]), &[1.0, 2.0, 5.0, 10.0, 20.0]));
        assert!(close(&ticks(&[0.3, 0.4]), &[0.2, 0.5]));
        assert!(close(&ticks(&[100.0]), &[100.0, 200.0]), "one value");
        assert!(ticks(&[]).len() >= 2 && ticks(&[f64::NAN, 0.0]).len() >= 2, "no value");
    }

    #[test]
    fn equal_factors_and_equal_nines_are_equally_far_apart() {
        let axis = |scale, ticks: &[f64]| Axis {
            label: "",
            scale,
            ticks: ticks.iter().map(|&tick| (tick, String::new())).collect(),
        };
        let log = axis(Scale::Logarithmic, &[1.0, 10.0, 100.0]);
        assert!((log.place(10.0) - 0.5).abs() < 1e-9);
        assert_eq!((log.place(0.0), log.place(1e9)), (0.0, 1.0), "beyond the ends");
        let nines = axis(Scale::Nines, &[0.0, 0.9, 0.99]);
        assert!((nines.place(0.9) - 0.5).abs() < 1e-9);
        assert_eq!((nines.place(0.0), nines.place(1.0)), (0.0, 1.0));
    }
}
