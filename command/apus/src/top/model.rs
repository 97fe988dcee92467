//! Model: content of the view, from the last two samples and the user's choices.

use std::collections::BTreeMap;

use apus::introspection::{RpcRow, Senders};
use apus::snapshot::{EndpointSnapshot, Snapshot};
use ratatui::widgets::TableState;

use super::sampler::{ProcessSample, Sample};
use crate::activity::Activity;
use crate::processes::label;

/// Shortest and longest interval between samples, in seconds.
pub(super) const INTERVALS: (f64, f64) = (0.1, 60.0);

/// The state of the view.
pub(super) struct Model {
    /// The processes, ordered by id.
    pub(super) rows: Vec<Row>,
    /// Index of the selected process in `rows`, as required by the table widget.
    pub(super) table: TableState,
    /// Id of the selected process, which remains selected when others start and end.
    selected: Option<u32>,
    /// Counters of each process in the last sample.
    last: BTreeMap<u32, Snapshot>,
    /// Seconds between two samples.
    pub(super) interval: f64,
    /// Whether new samples are discarded.
    pub(super) paused: bool,
    /// Whether a sample has arrived.
    pub(super) has_sample: bool,
}

/// A process.
pub(super) struct Row {
    pub(super) pid: u32,
    /// Its program and addresses, or the reason why it does not answer.
    pub(super) label: String,
    /// Its figures; `None` until the second sample.
    pub(super) figures: Option<Figures>,
    /// The figures of its shards, if it has a sharded endpoint.
    pub(super) shards: Vec<(String, Figures)>,
    /// Its live RPCs, the oldest first.
    pub(super) rpcs: Vec<RpcRow>,
    /// The peers with arriving messages.
    pub(super) senders: Senders,
}

/// The figures of a process.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// Calls that ended with a response, per second, over the network and through shared memory.
    pub(super) calls: f64,
    /// Completely received requests, per second.
    pub(super) served: f64,
    /// Megabytes of messages delivered to the application, per second.
    pub(super) megabytes: f64,
    /// Median and 99th percentile of round trips, in nanoseconds.
    pub(super) rtt: [Option<u64>; 2],
    /// Median and 99th percentile of serving times, in nanoseconds.
    pub(super) serving: [Option<u64>; 2],
    /// Live RPCs, as client and as server.
    pub(super) rpcs: u64,
    /// Requests and completions waiting for the application.
    pub(super) waiting: u64,
    /// Messages waiting for grants.
    pub(super) grantable: u64,
    /// Megabytes granted, per second.
    pub(super) granted: f64,
    /// Bytes granted and not yet received.
    pub(super) incoming: u64,
    /// Bytes waiting for transmission or acknowledgment.
    pub(super) sending: u64,
    /// Packets retransmitted, per second.
    pub(super) resent: f64,
    /// Cores used by the process.
    pub(super) cores: f64,
    /// Nonzero canaries.
    pub(super) canaries: usize,
}

impl Figures {
    fn of(activity: &Activity) -> Self {
        let gauge = |name| activity.change.gauge(name);
        let quantiles = |name: &str| {
            let values = activity.change.histograms.get(name);
            [0.5, 0.99].map(|share| values.and_then(|values| values.quantile(share)))
        };
        let bytes = activity.change.histograms.get("message_bytes").map_or(0, |values| values.sum);
        Self {
            calls: activity.rate("client_responses_done") + activity.rate("local_calls"),
            served: activity.rate("server_requests_done") + activity.rate("local_requests"),
            megabytes: bytes as f64 / 1e6 / activity.seconds,
            rtt: quantiles("call_nanos"),
            serving: quantiles("serve_nanos"),
            // `calls` includes calls through shared memory, which are not RPCs of the protocol.
            rpcs: gauge("calls").max(gauge("client_rpcs")) + gauge("server_rpcs"),
            waiting: gauge("requests_waiting") + gauge("ends_waiting"),
            grantable: gauge("grantable"),
            granted: activity.rate("granted_bytes") / 1e6,
            incoming: gauge("incoming_bytes"),
            sending: gauge("send_bytes"),
            resent: activity.rate("resent_packets"),
            cores: activity.cores,
            canaries: activity.canaries().count(),
        }
    }
}

/// Returns the name and the figures of each shard.
fn shards(activity: &Activity) -> Vec<(String, Figures)> {
    let shard = |shard: &EndpointSnapshot| {
        let name = format!("{} shard {}", shard.address, shard.shard.unwrap_or_default());
        (name, Figures::of(&activity.of_shard(shard)))
    };
    activity.shards.iter().map(shard).collect()
}

impl Model {
    /// Returns a model without processes.
    pub(super) fn new(interval: f64) -> Self {
        Self {
            rows: Vec::new(),
            table: TableState::default(),
            selected: None,
            last: BTreeMap::new(),
            interval,
            paused: false,
            has_sample: false,
        }
    }

    /// Shows a new sample, unless the view is paused.
    pub(super) fn update(&mut self, sample: Sample) {
        if self.paused {
            return;
        }
        self.has_sample = true;
        let mut last = BTreeMap::new();
        let mut rows = Vec::new();
        for process in sample {
            rows.push(self.row(&process));
            if let Ok(snapshot) = process.snapshot {
                last.insert(process.pid, snapshot);
            }
        }
        self.last = last;
        self.rows = rows;
        self.find_selected();
    }

    fn row(&self, process: &ProcessSample) -> Row {
        let (label, activity) = match &process.snapshot {
            Ok(now) => {
                let before = self.last.get(&process.pid);
                (label(now), before.and_then(|before| Activity::between(before, now)))
            }
            Err(error) => (error.clone(), None),
        };
        let shards = activity.as_ref().map(shards).unwrap_or_default();
        let figures = activity.as_ref().map(Figures::of);
        let (rpcs, senders) = (process.rpcs.clone(), process.senders.clone());
        Row { pid: process.pid, label, figures, shards, rpcs, senders }
    }

    /// Returns the selected process; `None` without processes.
    pub(super) fn selected(&self) -> Option<&Row> {
        self.rows.get(self.table.selected()?)
    }

    pub(super) fn select_next(&mut self) {
        self.select(self.table.selected().map_or(0, |index| index + 1));
    }

    pub(super) fn select_previous(&mut self) {
        self.select(self.table.selected().map_or(0, |index| index.saturating_sub(1)));
    }

    fn select(&mut self, index: usize) {
        let index = index.min(self.rows.len().saturating_sub(1));
        self.selected = self.rows.get(index).map(|row| row.pid);
        self.find_selected();
    }

    /// Finds the selected process among the rows, and selects the first process if it has ended.
    fn find_selected(&mut self) {
        let place = |pid| self.rows.iter().position(|row| row.pid == pid);
        let index = self.selected.and_then(place).unwrap_or(0);
        self.selected = self.rows.get(index).map(|row| row.pid);
        self.table.select(self.selected.map(|_| index));
    }

    /// Pauses or continues the view.
    pub(super) const fn toggle_pause(&mut self) {
        self.paused = !self.paused;
    }

    /// Multiplies the interval by `factor`, within [`INTERVALS`], and returns the new interval in
    /// seconds.
    pub(super) fn scale_interval(&mut self, factor: f64) -> f64 {
        let (shortest, longest) = INTERVALS;
        self.interval = (self.interval * factor).clamp(shortest, longest);
        self.interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(pid: u32, seconds: u64, calls: u64) -> ProcessSample {
        let mut endpoint =
            EndpointSnapshot::new("127.0.0.1:4000".parse().unwrap(), &apus::Metrics::default());
        endpoint.counters.insert("client_responses_done".to_owned(), calls);
        endpoint.gauges.insert("client_rpcs".to_owned(), 3);
        let snapshot = Snapshot {
            pid,
            monotonic_nanos: seconds * 1_000_000_000,
            endpoints: vec![endpoint],
            ..Snapshot::default()
        };
        ProcessSample { pid, snapshot: Ok(snapshot), rpcs: Vec::new(), senders: Senders::default() }
    }

    #[test]
    fn figures_are_known_from_the_second_sample_on() {
        let mut model = Model::new(1.0);
        model.update(vec![sample(1, 10, 100)]);
        assert_eq!(model.rows[0].figures, None);
        model.update(vec![sample(1, 12, 300)]);
        let figures = model.rows[0].figures.clone().unwrap();
        assert_eq!((figures.calls, figures.rpcs), (100.0, 3));
    }

    #[test]
    fn a_process_stays_selected_when_others_start_and_end() {
        let mut model = Model::new(1.0);
        model.update(vec![sample(5, 1, 0), sample(7, 1, 0)]);
        assert_eq!(model.selected().map(|row| row.pid), Some(5));
        model.select_next();
        model.select_next();
        model.update(vec![sample(3, 2, 0), sample(5, 2, 0), sample(7, 2, 0)]);
        assert_eq!(
            (model.selected().map(|row| row.pid), model.table.selected()),
            (Some(7), Some(2))
        );
        model.update(vec![sample(3, 3, 0)]);
        assert_eq!(model.selected().map(|row| row.pid), Some(3));
        model.update(Vec::new());
        assert!(model.selected().is_none());
        model.select_previous();
        assert!(model.selected().is_none());
    }

    #[test]
    fn a_paused_view_does_not_change() {
        let mut model = Model::new(1.0);
        model.update(vec![sample(1, 1, 0)]);
        model.toggle_pause();
        model.update(vec![sample(1, 2, 0), sample(2, 2, 0)]);
        assert_eq!(model.rows.len(), 1);
        model.toggle_pause();
        model.update(vec![sample(1, 3, 0), sample(2, 3, 0)]);
        assert_eq!(model.rows.len(), 2);
        assert_eq!((model.scale_interval(0.01), model.scale_interval(1e9)), (0.1, 60.0));
    }

    #[test]
    fn a_process_that_does_not_answer_shows_the_reason() {
        let mut model = Model::new(1.0);
        let silent = ProcessSample {
            pid: 9,
            snapshot: Err("process 9 did not answer".to_owned()),
            rpcs: Vec::new(),
            senders: Senders::default(),
        };
        model.update(vec![silent]);
        assert_eq!(model.rows[0].label, "process 9 did not answer");
    }
}
