//! The style sheet and the script of charts.

/// Colours for light and dark schemes, and the classes of a chart. A page includes it in its style
/// sheet.
pub const STYLE: &str = include_str!("style.css");

/// The script for pointing at values, hiding lines, and switching scales. A page includes it at its
/// end.
pub const SCRIPT: &str = include_str!("script.js");
