//! Counters as OpenMetrics text.

use super::families::FamilyCollector;
use crate::snapshot::Snapshot;
use prometheus_client::registry::Registry;

/// The HTTP content type of [`text()`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns the counters as OpenMetrics text. With `by_process` each value has the labels `pid` and
/// `program`. Buckets of `rpc_client_call_duration` and `rpc_server_call_duration` have
/// [exemplars](crate::snapshot::Exemplar).
#[must_use]
pub fn text(snapshots: Vec<Snapshot>, by_process: bool) -> String {
    let collector = FamilyCollector { snapshots, by_process };
    let exemplars = collector.exemplars();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(collector));
    let mut text = String::new();
    let written = prometheus_client::encoding::text::encode(&mut text, &registry);
    debug_assert!(written.is_ok(), "a string takes everything");
    exemplars.insert_into(text)
}
