//! The input of a report: settings, transports and their runs.

use std::collections::BTreeMap;

use apus::PollMode;
use serde_json::{Map, Value, json};

use crate::cluster::{KillEffect, SwitchLoad};
use crate::slowdown::Summary;
use apus_report::result::{PhaseCounts, rounded};
use apus_report::stats::Spread;

/// Everything that was measured, and the settings.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The settings, and values derived from them.
    pub settings: Settings,
    /// The transports, in display order.
    pub transports: Vec<Transport>,
    /// Caveats that the figures do not show, such as failed runs.
    pub notes: Vec<String>,
}

/// The settings that all transports share.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The workload, like `w4` or `w4 truncated at 1000000 bytes`.
    pub workload: String,
    /// Their mean size in bytes.
    pub mean_bytes: f64,
    /// Largest size of the short messages, the smaller half, in bytes.
    pub short_bytes: u32,
    /// Hosts; each is client and server.
    pub nodes: usize,
    /// Rate of every link in bits per second.
    pub link: u64,
    /// How that rate was chosen, in words: `given`, or the result of `auto` and the remaining share
    /// of idle core time.
    pub link_how: String,
    /// Offered load as a share of each link, headers included.
    pub load: f64,
    /// Requests due at each node, per second.
    pub rate: f64,
    /// Seconds that count in each run.
    pub seconds: f64,
    /// Number of runs of each transport.
    pub runs: usize,
    /// Seed of everything random.
    pub seed: u64,
    /// Maximum IP packet size in bytes.
    pub mtu: u32,
    /// How threads wait.
    pub poll: PollMode,
    /// Ports of each node, each served by a separate agent.
    pub processes: usize,
    /// Threads that serve at each port.
    pub receivers: usize,
    /// Maximum outstanding requests of each node.
    pub client_max: u32,
    /// Number of switch priorities in use.
    pub priorities: u8,
    /// All other settings by name, for example non-default parameters of apus.
    pub more: Map<String, Value>,
    /// The base of slowdowns, in words.
    pub base: String,
    /// The arithmetic of the best p99 of short messages that these links allow, line by line.
    pub bound: Vec<String>,
    /// The command that repeats the measurement.
    pub command: String,
}

/// The measurements of one transport.
#[derive(Clone, Debug)]
pub struct Transport {
    /// Its name, like `tcp-pool`.
    pub name: String,
    /// The transports that ran at the same time; usually empty.
    pub beside: Vec<String>,
    /// Its configuration in words, with everything that affects its figures.
    pub settings: String,
    /// The runs with a result, in order. The row of a transport without results states the reason.
    pub runs: Vec<Run>,
    /// How many runs were repeated, disturbed or lost.
    pub counts: PhaseCounts,
    /// Reason for the first lost run, if any.
    pub why_lost: Option<String>,
}

/// The result of one transport in one run, over all nodes.
#[derive(Clone, Debug)]
pub struct Run {
    /// Number of the run, from 0. Transports are compared within a run.
    pub number: usize,
    /// Slowdowns.
    pub summary: Summary,
    /// Offered share of each link, headers included.
    pub offered_load: f64,
    /// Share of each link used by the requests completed in time.
    pub achieved_load: f64,
    /// Bits of payload per second that all nodes received together.
    pub throughput: f64,
    /// Requests that were never completed.
    pub errors: u64,
    /// The error of the first of them.
    pub why: Option<String>,
    /// Seconds of processor time for each 10⁹ bytes of payload.
    pub cpu_per_gb: f64,
    /// 99th percentile of the delay between due time and start of requests, in microseconds. Above
    /// some tens, the load was not offered as intended.
    pub late_p99_us: f64,
    /// Share of idle time of the machine's cores; `None` if unknown. Transports that ran at the
    /// same time share it.
    pub idle: Option<f64>,
    /// The load of the switch; `None` if the switch is not part of a fabric. Transports that ran at
    /// the same time share it.
    pub switch: Option<SwitchLoad>,
    /// Counters of the transport at all nodes, by name, warm-up included.
    pub counters: BTreeMap<String, u64>,
    /// Effect of the kill of a process on the others; `None` without a kill.
    pub kill: Option<KillEffect>,
}

impl Transport {
    /// Returns its name in results: the transport, and the concurrent transports.
    #[must_use]
    pub fn row(&self) -> String {
        if self.beside.is_empty() {
            self.name.clone()
        } else {
            format!("{} beside {}", self.name, self.beside.join("+"))
        }
    }

    /// Returns one value per run.
    pub(super) fn over_runs(&self, figure: impl Fn(&Run) -> f64) -> Vec<f64> {
        self.runs.iter().map(figure).collect()
    }

    /// Returns the spread of one value per run.
    pub(super) fn spread(&self, figure: impl Fn(&Run) -> f64) -> Spread {
        Spread::over(&self.over_runs(figure))
    }

    /// Returns the spread of a figure that a run may lack; `None` if a run lacks it.
    pub(super) fn spread_of(&self, figure: impl Fn(&Run) -> Option<f64>) -> Option<Spread> {
        let values: Option<Vec<f64>> = self.runs.iter().map(figure).collect();
        values.map(|values| Spread::over(&values))
    }

    /// Returns the values of the runs that both transports have, in the same order.
    pub(super) fn paired(
        &self,
        other: &Self,
        figure: impl Fn(&Run) -> f64,
    ) -> (Vec<f64>, Vec<f64>) {
        let theirs = |run: &Run| other.runs.iter().find(|each| each.number == run.number);
        let pairs = self.runs.iter().filter_map(|run| Some((figure(run), figure(theirs(run)?))));
        pairs.unzip()
    }

    /// Returns the number of requests that were never completed, in all runs.
    pub(super) fn errors(&self) -> u64 {
        self.runs.iter().map(|run| run.errors).sum()
    }
}

impl Settings {
    /// Returns everything, by name.
    pub(super) fn config(&self, transports: &[Transport]) -> Map<String, Value> {
        let settings =
            transports.iter().map(|each| (each.name.clone(), json!(each.settings))).collect();
        let config = [
            ("workload", json!(self.workload)),
            ("mean_bytes", json!(rounded(self.mean_bytes))),
            ("short_bytes", json!(self.short_bytes)),
            ("nodes", json!(self.nodes)),
            ("link_mbps", json!(self.link as f64 / 1e6)),
            ("link_how", json!(self.link_how)),
            ("load", json!(self.load)),
            ("rate_per_node", json!(rounded(self.rate))),
            ("seconds", json!(self.seconds)),
            ("runs", json!(self.runs)),
            ("seed", json!(self.seed)),
            ("mtu", json!(self.mtu)),
            ("poll", json!(self.poll)),
            ("processes", json!(self.processes)),
            ("receivers", json!(self.receivers)),
            ("client_max", json!(self.client_max)),
            ("priorities", json!(self.priorities)),
        ];
        let config = config.into_iter().map(|(name, value)| (name.to_owned(), value));
        let words = [
            ("base", json!([self.base])),
            ("bound", json!(self.bound)),
            ("command", json!([self.command])),
            ("settings", Value::Object(settings)),
        ];
        let words = words.into_iter().map(|(name, value)| (name.to_owned(), value));
        config.chain(self.more.clone()).chain(words).collect()
    }
}
