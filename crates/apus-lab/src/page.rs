//! How does a page with results look?
//!
//! Every page is one file that loads nothing from elsewhere, and looks well in light and in dark.

use crate::chart;

/// The style sheet of a page and of the charts in it.
#[must_use]
pub fn style() -> String {
    format!("{}{}", chart::STYLE, include_str!("page.css"))
}
