//! Counters for Prometheus, as OpenMetrics 1.0 text.
//!
//! `docs/metrics.md` of the repository has the meaning of each name and its form in Prometheus.

mod exemplars;
mod families;
mod text;

pub use text::{CONTENT_TYPE, text};
