//! Reference of a setting: published figures of the same set-up.

use std::sync::LazyLock;

use apus_workload::Workload;
use serde_json::{Map, Value};

use super::setting::Setting;
use crate::{Plan, SweepOptions};
use apus_sim::published::{self, Queue, QueueLength, Scheme};

/// Published figures for comparison with a setting: figures of the same workload at the same load,
/// if the fabric is the paper's.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// Slowdowns, if published for this load.
    pub slowdowns: Option<&'static published::Figure>,
    /// Queues of the paper's Homa, in the order of [`Queue::ALL`], if published for this load.
    pub queues: Option<[QueueLength; 3]>,
}

/// Settings that must equal the paper's for a comparison.
const SAME: [&str; 13] = [
    "preset",
    "topology",
    "link",
    "fabric_link",
    "switch_delay_ns",
    "host_delay_ns",
    "propagation_ns",
    "per_rack_delay_ns",
    "spreading",
    "buffer",
    "pattern",
    "answer",
    "peer_model",
];

/// Load of the paper's table of queues.
const QUEUES_AT: f64 = 0.8;

/// The paper's set-up, as options describe it.
static PAPER: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let workloads = vec![Workload::published(1)];
    let plan = Plan::new(&SweepOptions { workloads, messages: Some(1), ..SweepOptions::default() });
    plan.map(|mut plan| plan.points.swap_remove(0).config).unwrap_or_default()
});

impl Reference {
    /// Returns the published figures for this setting.
    #[must_use]
    pub fn of(setting: &Setting) -> Self {
        let config = &setting.config;
        let workload = config.get("workload").and_then(Value::as_str).unwrap_or_default();
        if SAME.iter().any(|name| config.get(*name) != PAPER.get(*name)) {
            return Self { slowdowns: None, queues: None };
        }
        let queue = |queue| published::queue_length(workload, queue);
        let queues = match Queue::ALL.map(queue) {
            [Some(up), Some(down), Some(host)] if (setting.load() - QUEUES_AT).abs() < 1e-6 => {
                Some([up, down, host])
            }
            _ => None,
        };
        Self { slowdowns: published::figure(workload, setting.load()), queues }
    }

    /// Returns the published row for comparison with a transport.
    #[must_use]
    pub fn row(&self, transport: &str) -> Option<&'static published::Row> {
        let scheme = scheme(transport)?;
        self.slowdowns?.rows.iter().find(|row| row.scheme == scheme)
    }

    /// Returns the published queues for comparison with a transport.
    #[must_use]
    pub fn queues_of(&self, transport: &str) -> Option<[QueueLength; 3]> {
        self.queues.filter(|_| scheme(transport) == Some(Scheme::Homa))
    }
}

/// Returns the paper's scheme for a transport.
fn scheme(transport: &str) -> Option<Scheme> {
    match transport {
        "apus" => Some(Scheme::Homa),
        "oracle" => Some(Scheme::SrptOracle),
        _ => None,
    }
}
