//! Time traces of several processes on one clock, and the questions people ask of them.
//!
//! ```text
//!   merge     several processes' traces on one clock
//!   report    one module per question
//!   view      each report as tables, JSON and charts
//!   perfetto  files for the Perfetto UI
//! ```
//!
//! The recorder is `apus-trace`, which applications link; nothing here runs in them.

#![forbid(unsafe_code)]

pub mod merge;
pub mod perfetto;
pub mod report;
pub mod view;
