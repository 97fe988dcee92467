//! Counters for Prometheus: OpenMetrics 1.0 text, and with `introspection` an exporter over HTTP.
//!
//! `docs/metrics.md` of the repository has the meaning of each name and its form in Prometheus.

mod exemplars;
#[cfg(feature = "introspection")]
mod exporter;
mod families;
mod text;

#[cfg(feature = "introspection")]
pub use exporter::Exporter;
pub use text::{CONTENT_TYPE, text};
