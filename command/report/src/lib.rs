//! Results of experiments: statistics, tables, JSON, charts and pages.
//!
//! An experiment returns one value, [`Findings`](findings::Findings). Text, JSON and page are
//! rendered from it in this crate only, so they cannot contradict each other.
//!
//! ```text
//!   declaration  an experiment's report as data: texts, figures of rows, ratios
//!   findings     results of an experiment, rendered as text, JSON, page and chart files
//!   series       measurements along a parameter
//!   runs         results of a measurement that was repeated
//!   published    figures of others, read from CSV
//!   experiment   the interface of experiments: options, a run, findings
//!   page         self-contained HTML
//!   result       rows, ratios, comparisons; the table and the JSON object made of them
//!   chart        lines and bars as SVG
//!   stats        percentiles, spreads over runs, differences with confidence intervals
//!   lines        files of one record per line that outlive an interrupted experiment
//!   output_file  files for results, protected from other users
//!   progress     the progress bar of an experiment
//!   machine      the machine that produced a result
//! ```
//!
//! This crate contains no experiment and judges no result.

#![forbid(unsafe_code)]

pub mod chart;
pub mod declaration;
pub mod experiment;
pub mod findings;
pub mod lines;
pub mod machine;
pub mod output_file;
pub mod page;
pub mod progress;
pub mod published;
pub mod result;
pub mod runs;
pub mod series;
pub mod stats;
