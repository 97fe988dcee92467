//! Analysis of time traces: aligns the clocks of several processes, and builds reports.
//!
//! ```text
//!   merge     the traces of several processes on one clock
//!   report    reports, one module for each
//!   view      reports as tables, JSON and charts
//!   perfetto  export to the Perfetto UI
//! ```
//!
//! `apus trace` is the command line of this crate. Applications link only the recorder,
//! `apus-trace`.

#![forbid(unsafe_code)]

pub mod merge;
pub mod perfetto;
pub mod report;
pub mod view;
