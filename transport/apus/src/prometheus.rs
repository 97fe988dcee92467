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
//! `apus metrics --all --listen ADDR` exports the counters of programs without this feature.
//! `docs/metrics.md` has the meaning of each name and its form in Prometheus.

pub use apus_observe::prometheus::{CONTENT_TYPE, Exporter, text};
