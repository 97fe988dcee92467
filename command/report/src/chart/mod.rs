//! Charts as inline SVG.
//!
//! They are drawn without a library, because a page must be light or dark as its reader prefers:
//! every colour is a class with a value in [`STYLE`], and text is rendered by the browser.
//!
//! ```text
//!   Axis ─▶ Chart (lines), Bars, Sequences ─▶ Plot (with title, legend, caption) ─▶ a page, or a separate file
//! ```
//!
//! A chart is complete without a script. [`SCRIPT`] makes it interactive. Elements carry their name
//! (`data-name`), subject (`data-at`), text (`data-says`) and value (`data-y`), so the script needs
//! no other data.

mod assets;
mod axis;
mod bars;
mod frame;
mod lines;
mod plot;
mod sequence;
mod standalone;
mod stroke;

pub use assets::{SCRIPT, STYLE};
pub use axis::{Axis, Scale, Ticks, bytes, decades, micros, short_number, steps};
pub use bars::{Bar, Bars, Group};
pub use lines::{Chart, Line, Point};
pub use plot::{Heading, Plot};
pub use sequence::{Arrow, Sequence, Sequences};
pub use stroke::{Stroke, class};
