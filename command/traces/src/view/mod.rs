//! Views: renders the reports on time traces.
//!
//! [`crate::report`] computes a report; a view renders it as tables, as one JSON object, and as an
//! HTML page with charts. Every view starts with the traces and the alignment of their clocks,
//! since no figure is more precise than the alignment. `apus trace` prints views.
//!
//! ```text
//!   timeline, delays, rtt, rpcs, grants, handoffs, losses, cores, files   one report each
//!     └── report_view   common parts: JSON, page, files
//!           └── origin, cells     traces and clocks; formatting of table cells
//! ```

mod cells;
mod cores;
mod delays;
mod files;
mod grants;
mod handoffs;
mod losses;
mod origin;
mod report_view;
mod rpcs;
mod rtt;
mod timeline;

pub use cores::cores;
pub use delays::delays;
pub use files::files;
pub use grants::grants;
pub use handoffs::handoffs;
pub use losses::losses;
pub use report_view::ReportView;
pub use rpcs::rpcs;
pub use rtt::rtt;
pub use timeline::timeline;

#[cfg(test)]
mod tests;
