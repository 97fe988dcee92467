//! The reference of a setting: published figures of the same set-up.

use std::sync::LazyLock;

use apus_workload::Workload;
use serde_json::{Map, Value};

use super::setting::Setting;
use crate::{Options, Plan};
use apus_sim::published::{self, Queue, QueueLength, Scheme};

/// The published figures that a setting may be held against: those of the same workload at the same load, if
/// the fabric is the paper's.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// Slowdowns, if they are known for this load.
    pub slowdowns: Option<&'static published::Figure>,
    /// Queues of the paper's Homa, in the order of [`Queue::ALL`], if they are known for this load.
    pub queues: Option<[QueueLength; 3]>,
}

/// The settings that a fabric shares with the paper's.
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

/// Load at which the paper's table of queues was measured.
const QUEUES_AT: f64 = 0.8;

/// The paper's set-up, as options describe it.
static PAPER: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let workloads = vec![Workload::published(1)];
    let plan = Plan::new(&Options { workloads, messages: Some(1), ..Options::default() });
    plan.map(|mut plan| plan.points.swap_remove(0).config).unwrap_or_default()
});

impl Reference {
    /// Returns what is published about this setting.
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

    /// Returns the published row that a transport is held against.
    #[must_use]
    pub fn row(&self, transport: &str) -> Option<&'static published::Row> {
        let scheme = scheme(transport)?;
        self.slowdowns?.rows.iter().find(|row| row.scheme == scheme)
    }

    /// Returns the published queues that a transport is held against.
    #[must_use]
    pub fn queues_of(&self, transport: &str) -> Option<[QueueLength; 3]> {
        self.queues.filter(|_| scheme(transport) == Some(Scheme::Homa))
    }
}

/// Returns what a transport was called in the paper.
fn scheme(transport: &str) -> Option<Scheme> {
    match transport {
        "apus" => Some(Scheme::Homa),
        "oracle" => Some(Scheme::SrptOracle),
        _ => None,
    }
}
