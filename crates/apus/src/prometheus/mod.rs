//! Counters for Prometheus: as OpenMetrics 1.0 text ([`text()`]) and over HTTP ([`Exporter`]).
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let endpoint = apus::Endpoint::bind("0.0.0.0:4000")?;
//! // Serves http://127.0.0.1:9464/metrics until it is dropped.
//! let exporter = apus::prometheus::Exporter::start("127.0.0.1:9464".parse()?)?;
//! # drop((endpoint, exporter));
//! # Ok(())
//! # }
//! ```
//!
//! `apus metrics --all --listen ADDR` exports the counters of programs without this feature. `docs/metrics.md` has the meaning of each
//! name and its form in Prometheus.

mod families;
mod http;

pub use http::Exporter;

use crate::snapshot::Snapshot;
use families::FamilyCollector;
use prometheus_client::registry::Registry;

/// The HTTP content type of [`text()`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns the counters as OpenMetrics text. With `by_process` each value has the labels `pid` and `program`.
#[must_use]
pub fn text(snapshots: Vec<Snapshot>, by_process: bool) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(FamilyCollector { snapshots, by_process }));
    let mut text = String::new();
    let written = prometheus_client::encoding::text::encode(&mut text, &registry);
    debug_assert!(written.is_ok(), "a string takes everything");
    text
}
