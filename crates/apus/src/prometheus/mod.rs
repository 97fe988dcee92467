//! How does Prometheus read the counters?
//!
//! [`text()`] is the text that it scrapes (OpenMetrics 1.0, which Prometheus and its kin have read for years), and an [`Exporter`] serves it over
//! HTTP:
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let endpoint = apus::Endpoint::bind("0.0.0.0:4000")?;
//! // `curl http://127.0.0.1:9464/metrics`, until it is dropped.
//! let exporter = apus::prometheus::Exporter::start("127.0.0.1:9464".parse()?)?;
//! # drop((endpoint, exporter));
//! # Ok(())
//! # }
//! ```
//!
//! Programs that know nothing of this are exported by `apus metrics --all --listen ADDR`. What each name means, and what becomes of it
//! here, is in `docs/metrics.md`.

mod families;
mod http;

pub use http::Exporter;

use crate::snapshot::Snapshot;
use families::Families;
use prometheus_client::registry::Registry;

/// The type of the text, for HTTP.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The counters as text. With `by_process` each value says which process it is of, by its number and program.
#[must_use]
pub fn text(snapshots: Vec<Snapshot>, by_process: bool) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families { snapshots, by_process }));
    let mut text = String::new();
    let written = prometheus_client::encoding::text::encode(&mut text, &registry);
    debug_assert!(written.is_ok(), "a string takes everything");
    text
}
