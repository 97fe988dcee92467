//! Charts: figures as inline SVG.
//!
//! Hand-made rather than plotted by a library, because a page has to be light or dark as its reader
//! likes: every colour is a class whose value [`STYLE`] gives, and text is the browser's.
//!
//! ```text
//!   Axis ─▶ Chart (lines), Bars, Sequences ─▶ Plot (with title, legend, caption) ─▶ a page, or a file of its own
//! ```
//!
//! A chart is complete without a script. [`SCRIPT`] makes it interactive: what is drawn carries its
//! name (`data-name`), what it is about (`data-at`), what is said about it (`data-says`) and its value
//! (`data-y`), so that the script needs no other data.

mod axis;
mod bars;
mod frame;
mod lines;
mod plot;
mod sequence;
mod standalone;
mod stroke;

pub use axis::{Axis, Scale, Ticks, bytes, decades, micros, short_number, steps};
pub use bars::{Bar, Bars, Group};
pub use lines::{Chart, Line, Point};
pub use plot::{Heading, Plot};
pub use sequence::{Arrow, Sequence, Sequences};
pub use stroke::{Stroke, class};

/// Colours in light and in dark, and how the classes of a chart are drawn. A page puts it into its style
/// sheet.
pub const STYLE: &str = include_str!("style.css");

/// The script with which a reader points at values, hides lines, and switches scales. A page puts it at its end.
pub const SCRIPT: &str = include_str!("script.js");
