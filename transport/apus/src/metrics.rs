//! Reading the counters of an endpoint.

use apus_observe::{Metrics, ReadTime};

use crate::engine::shard::Shard;
use std::time::SystemTime;

impl Shard {
    /// Reads all counters.
    pub(crate) fn metrics(&self) -> Metrics {
        let core = self.lock();
        let mut metrics = Metrics::default();
        metrics.protocol = core.transport().metrics();
        metrics.engine = core.engine_metrics();
        metrics.messages = core.message_sizes();
        metrics.local_calls = core.local_calls();
        metrics.local_exemplars = core.local_exemplars();
        metrics.queues.calls = core.open_calls();
        metrics.queues.requests_waiting = core.waiting_requests() as u64;
        metrics.queues.ends_waiting = core.waiting_completions() as u64;
        metrics.queues.link_sharers = core.link_sharers() as u64;
        metrics.driver = self.driver_counters();
        metrics.read_at =
            Some(ReadTime { protocol: self.clock().now(), system: SystemTime::now() });
        metrics
    }
}
