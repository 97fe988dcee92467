//! Hosts of a fabric as JSON.

use apus_testbed::fabric::{Layout, PortCounters};
use serde_json::{Value, json};

/// Returns the hosts with their addresses, and with the `levels` of their ports from `counters`.
pub(super) fn json(layout: &Layout, counters: &[PortCounters]) -> Value {
    let host = |node| {
        let mut host = json!({
            "name": Layout::name(node),
            "address": layout.address(node),
            "address_v6": layout.address_v6(node),
        });
        let queues: Vec<_> = counters.iter().filter(|queue| queue.node == node).collect();
        if !queues.is_empty() {
            let mut levels = json!(queues);
            for level in levels.as_array_mut().into_iter().flatten() {
                // Redundant: the enclosing object is the host.
                level.as_object_mut().map(|level| level.remove("node"));
            }
            host["levels"] = levels;
        }
        host
    };
    (0..layout.spec().nodes).map(host).collect()
}
