//! Results of experiments: statistics, tables, JSON, charts and pages.
//!
//! People read tables and pages, machines read JSON. All of them are rendered from one value, an
//! [`Outcome`](result::Outcome), so that they cannot disagree.
//!
//! ```text
//!   stats     percentiles, spreads over runs, differences with confidence intervals
//!   result    rows, ratios, comparisons; the table and the JSON object made of them
//!   findings  a result with sentences, tables and plots, for people, machines and browsers
//!   chart     lines and bars as SVG        page   self-contained HTML
//!   lines     files of one record per line that outlive an interrupted experiment
//!   progress  how far an experiment is     machine   the machine a result belongs to
//! ```
//!
//! No experiment lives here, and nothing here judges a result.

#![forbid(unsafe_code)]

pub mod chart;
pub mod findings;
pub mod lines;
pub mod machine;
pub mod page;
pub mod progress;
pub mod result;
pub mod stats;
