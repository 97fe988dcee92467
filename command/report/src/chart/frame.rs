//! The frame of a chart: margins, axes, whiskers.

use std::fmt::{self, Write};

use minijinja::HtmlEscape;

use super::axis::{Axis, place};

/// Size of a chart and of its margins, in units that the browser scales.
pub(super) const WIDTH: f64 = 860.0;
pub(super) const HEIGHT: f64 = 380.0;
pub(super) const LEFT: f64 = 64.0;
pub(super) const RIGHT: f64 = 32.0;
pub(super) const TOP: f64 = 14.0;
pub(super) const BOTTOM: f64 = 52.0;

/// Width of a whisker's ends.
const CAP: f64 = 8.0;

/// Opens a chart. `kind` selects how the script moves values: `lines`, `bars` or `stack`.
pub(super) fn open(to: &mut String, description: &str, kind: &str) -> fmt::Result {
    open_as_high(to, description, kind, HEIGHT)
}

/// Opens a chart of this height.
pub(super) fn open_as_high(
    to: &mut String,
    description: &str,
    kind: &str,
    height: f64,
) -> fmt::Result {
    let (description, bottom) = (HtmlEscape(description), HEIGHT - BOTTOM);
    writeln!(
        to,
        r#"<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{description}" data-kind="{kind}" data-top="{TOP}" data-bottom="{bottom}">"#
    )
}

/// Returns the position of a value on a vertical axis.
pub(super) fn place_y(axis: &Axis<'_>, value: f64) -> f64 {
    place_between(axis.place(value))
}

/// Returns the position of a share of the vertical axis.
fn place_between(share: f64) -> f64 {
    HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
}

/// Draws the vertical axis: a line and a label for each tick. The other scale is hidden.
pub(super) fn draw_y(to: &mut String, axis: &Axis<'_>) -> fmt::Result {
    for (index, (scale, ticks)) in axis.scales().enumerate() {
        let off = if index > 0 { " off" } else { "" };
        let (name, first, last) = (scale.name(), ticks[0].0, ticks[ticks.len() - 1].0);
        writeln!(
            to,
            r#"<g class="scale{off}" data-scale="{name}" data-first="{first}" data-last="{last}">"#
        )?;
        for (value, label) in ticks {
            draw_tick(to, place_between(place(scale, ticks, *value)), label)?;
        }
        writeln!(to, "</g>")?;
    }
    let y = TOP + (HEIGHT - TOP - BOTTOM) / 2.0;
    let label = HtmlEscape(axis.label);
    writeln!(
        to,
        r#"<text class="axis" transform="translate(14 {y}) rotate(-90)" text-anchor="middle">{label}</text>"#
    )
}

fn draw_tick(to: &mut String, y: f64, label: &str) -> fmt::Result {
    let (left, right) = (LEFT, WIDTH - RIGHT);
    writeln!(to, r#"<line class="grid" x1="{left}" x2="{right}" y1="{y:.1}" y2="{y:.1}"/>"#)?;
    let (x, y) = (left - 8.0, y + 4.0);
    let label = HtmlEscape(label);
    writeln!(to, r#"<text x="{x}" y="{y:.1}" text-anchor="end">{label}</text>"#)
}

/// Draws a whisker from the least to the greatest value.
pub(super) fn whisker(
    to: &mut String,
    axis: &Axis<'_>,
    class: &str,
    x: f64,
    (low, high): (f64, f64),
) -> fmt::Result {
    let (bottom, top) = (place_y(axis, low), place_y(axis, high));
    let left = x - CAP / 2.0;
    writeln!(
        to,
        r#"<path class="whisker {class}" d="M{left:.1} {top:.1}h{CAP}M{x:.1} {top:.1}V{bottom:.1}M{left:.1} {bottom:.1}h{CAP}" data-x="{x:.1}" data-low="{low}" data-high="{high}"/>"#
    )
}

/// Draws the label of the horizontal axis.
pub(super) fn label_x(to: &mut String, label: &str) -> fmt::Result {
    let (x, y) = (LEFT + (WIDTH - LEFT - RIGHT) / 2.0, HEIGHT - 10.0);
    let label = HtmlEscape(label);
    writeln!(to, r#"<text class="axis" x="{x}" y="{y}" text-anchor="middle">{label}</text>"#)
}
