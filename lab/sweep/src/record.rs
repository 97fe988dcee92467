//! Records: the stored results of a run.
//!
//! A record has the figures for comparison with publications, in the units of the publications (KB
//! is 1000 bytes), with five significant digits.

use apus_report::result::rounded;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::plan::{Plan, PlanPoint};
use apus_sim::experiment::ExperimentReport;
use apus_sim::fabric::{Counters, QueueLength};
use apus_workload::time::MILLISECOND;

/// A point of a plan with its result: one line of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointRecord {
    /// Name of the plan.
    pub plan: String,
    /// Number of its points.
    pub of: u32,
    /// Number of the point.
    pub index: u32,
    /// The transport.
    pub transport: String,
    /// The seed.
    pub seed: u64,
    /// The rest of the configuration.
    pub config: Map<String, Value>,
    /// The result.
    pub result: Figures,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Growth of the backlog, as a share of the submitted bytes.
    pub growth: f64,
    /// Growth that is permitted for a sustained load.
    pub allowed_growth: f64,
    /// Slowdowns, relative to an idle fabric; `None` if the run did not reach a steady state.
    pub slowdown: Option<Slowdown>,
    /// Lengths of queues; `None` for a transport without queues.
    pub queues: Option<Queues>,
    /// Share of the links to hosts that was busy.
    pub achieved_load: f64,
    /// Share of time that links to hosts were idle although receivers withheld grants.
    pub wasted: f64,
    /// Share of the bytes on links to hosts by priority level, from 0.
    pub level_shares: [f64; 8],
    /// Messages delivered during the measurement.
    pub messages: u64,
    /// Messages that failed during the measurement.
    pub failed: u64,
    /// Data packets of the whole run.
    pub packets: u64,
    /// Packets dropped by switches.
    pub dropped: u64,
    /// Packets marked by switches.
    pub marked: u64,
    /// Payload of the delivered messages (and responses, if they are echoed), in Gbit/s that each
    /// host received on average.
    pub goodput: f64,
    /// Share of time that processors of hosts were busy; `None` without processors.
    pub processor_load: Option<f64>,
    /// Milliseconds from the end of a stall until the backlog was as short as before; `None`
    /// without a stall or without a recovery.
    pub recovery_ms: Option<f64>,
    /// Retransmissions; `None` for transports that do not count them.
    pub recovery: Option<Recovery>,
    /// Duration of the run in the fabric's time, in milliseconds.
    pub simulated_ms: f64,
}

/// Retransmissions of the hosts, and their causes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recovery {
    /// Packets dropped because the buffer of a socket was full.
    pub socket_overflows: u64,
    /// Share of the bytes of DATA packets that were sent again.
    pub resent_share: f64,
    /// DATA packets sent again, less those that were dropped.
    pub needless_resends: u64,
}

/// Slowdowns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slowdown {
    /// The greatest p99 of a bin in the smaller half of the messages.
    pub small_half_p99_max: f64,
    /// Mean over messages.
    pub mean_by_messages: f64,
    /// Mean over bytes.
    pub mean_by_bytes: f64,
    /// p99 of the bin with the longest messages.
    pub largest_bin_p99: f64,
    /// p99 of the longest messages alone, a thousandth of all at least.
    pub longest_p99: f64,
    /// p99 of medium messages (`MEDIUM` of the simulator); `None` without messages.
    pub medium_p99: Option<f64>,
    /// By size, smallest first.
    pub by_size: Vec<Bin>,
}

/// Slowdown of the messages of neighbouring sizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bin {
    /// Percentile of the messages where the bin ends.
    pub percentile: f64,
    /// Size of its longest messages in bytes.
    pub upto: u32,
    /// Messages in it.
    pub count: u64,
    /// Median; `None` without messages.
    pub p50: Option<f64>,
    /// 99th percentile; `None` without messages.
    pub p99: Option<f64>,
}

/// Lengths of queues over all ports of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queues {
    /// Of TORs towards spines.
    pub tor_spine: Queue,
    /// Of spines towards TORs.
    pub spine_tor: Queue,
    /// Of TORs towards hosts.
    pub tor_host: Queue,
}

/// Lengths of the queues of a kind, in KB.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Mean over time and ports.
    pub mean: f64,
    /// Maximum over ports.
    pub max: f64,
}

impl apus_report::lines::Record for PointRecord {
    fn plan(&self) -> &str {
        &self.plan
    }

    fn index(&self) -> u32 {
        self.index
    }

    fn of(&self) -> u32 {
        self.of
    }
}

impl PointRecord {
    /// Returns the record of a point of this plan.
    #[must_use]
    pub fn new(plan: &Plan, point: &PlanPoint, report: &ExperimentReport) -> Self {
        Self {
            plan: plan.name.clone(),
            of: plan.points.len() as u32,
            index: point.index,
            transport: point.transport.to_string(),
            seed: point.experiment.seed,
            config: point.config.clone(),
            result: Figures::new(report),
        }
    }
}

impl Figures {
    fn new(report: &ExperimentReport) -> Self {
        let counters = &report.counters;
        let bytes: u64 = counters.level_bytes.iter().sum();
        Self {
            growth: rounded(report.growth),
            allowed_growth: rounded(report.allowed_growth),
            slowdown: report.is_steady().then(|| Slowdown::new(&report.slowdown)),
            queues: (counters.time > 0).then(|| Queues::new(counters)),
            achieved_load: rounded(report.achieved_load()),
            wasted: rounded(counters.wasted),
            level_shares: counters
                .level_bytes
                .map(|each| rounded(each as f64 / bytes.max(1) as f64)),
            messages: report.messages,
            failed: report.failed,
            packets: report.packets,
            dropped: counters.dropped,
            marked: counters.marked,
            goodput: rounded(report.goodput * 8.0 / 1e9),
            processor_load: report.processor_load.map(rounded),
            recovery_ms: report.recovery.map(|time| rounded(time as f64 / MILLISECOND as f64)),
            recovery: (counters.hosts.data_bytes > 0).then(|| Recovery::new(counters)),
            simulated_ms: rounded(report.simulated as f64 / MILLISECOND as f64),
        }
    }
}

impl Recovery {
    fn new(counters: &Counters) -> Self {
        let hosts = counters.hosts;
        Self {
            socket_overflows: hosts.socket_overflows,
            resent_share: rounded(hosts.resent_bytes as f64 / hosts.data_bytes as f64),
            needless_resends: hosts
                .resent_packets
                .saturating_sub(hosts.dropped_data + counters.dropped),
        }
    }
}

impl Slowdown {
    fn new(slowdown: &apus_sim::experiment::Slowdown) -> Self {
        let bin = |bin: &apus_sim::experiment::Bin| Bin {
            percentile: rounded(bin.percentile),
            upto: bin.upto,
            count: bin.count,
            p50: (bin.count > 0).then(|| rounded(bin.p50)),
            p99: (bin.count > 0).then(|| rounded(bin.p99)),
        };
        Self {
            small_half_p99_max: rounded(slowdown.small_half_p99_max),
            mean_by_messages: rounded(slowdown.mean_by_messages),
            mean_by_bytes: rounded(slowdown.mean_by_bytes),
            largest_bin_p99: rounded(slowdown.largest_bin_p99),
            longest_p99: rounded(slowdown.longest.p99),
            medium_p99: (slowdown.medium.count > 0).then(|| rounded(slowdown.medium.p99)),
            by_size: slowdown.by_size.iter().map(bin).collect(),
        }
    }
}

impl Queues {
    fn new(counters: &Counters) -> Self {
        let queue = |length: QueueLength| Queue {
            mean: rounded(length.mean / 1e3),
            max: rounded(length.max as f64 / 1e3),
        };
        Self {
            tor_spine: queue(counters.tor_to_spine),
            spine_tor: queue(counters.spine_to_tor),
            tor_host: queue(counters.tor_to_host),
        }
    }
}
