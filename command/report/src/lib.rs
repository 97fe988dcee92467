//! Results of experiments: statistics, tables, JSON, charts and pages.
//!
//! An experiment returns one value, [`Findings`](findings::Findings). Text, JSON and page are rendered from it here and
//! nowhere else, so they cannot contradict each other.
//!
//! ```text
//!   experiment  the shape of experiments: options, a run, findings
//!   findings    what an experiment found, and its renderers
//!   result      rows, ratios, comparisons; the table and the JSON object made of them
//!   stats       percentiles, spreads over runs, differences with confidence intervals
//!   chart       lines and bars as SVG            page       self-contained HTML
//!   lines       files of one record per line that outlive an interrupted experiment
//!   output_file files that results are written to, safe from other users
//!   published   figures of others, read from CSV
//!   progress    the progress of an experiment    machine    the machine that a result belongs to
//! ```
//!
//! This crate contains no experiment and judges no result.

#![forbid(unsafe_code)]

pub mod chart;
pub mod experiment;
pub mod findings;
pub mod lines;
pub mod machine;
pub mod output_file;
pub mod page;
pub mod progress;
pub mod published;
pub mod result;
pub mod stats;
