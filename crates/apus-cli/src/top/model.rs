//! What is shown, and what has the user chosen?

use std::collections::BTreeMap;

use apus::live::RpcRow;
use apus::snapshot::Snapshot;
use ratatui::widgets::TableState;

use super::INTERVALS;
use super::watch::{Look, Seen};
use crate::metrics::{Change, about};

/// Everything that a picture needs.
pub(super) struct Model {
    /// The processes, by number.
    pub(super) rows: Vec<Row>,
    /// Where the selected one is among them.
    pub(super) table: TableState,
    /// Number of the selected one: it stays selected when others come and go.
    selected: Option<u32>,
    /// What each has counted up to the last look.
    last: BTreeMap<u32, Snapshot>,
    /// Seconds between two looks.
    pub(super) interval: f64,
    /// Whether new looks are not shown.
    pub(super) held: bool,
    /// Whether there was a look.
    pub(super) looked: bool,
}

/// A process.
pub(super) struct Row {
    pub(super) pid: u32,
    /// What it is.
    pub(super) about: String,
    /// What it does; not known at the first look.
    pub(super) figures: Option<Figures>,
    /// The RPCs that live there, the oldest first.
    pub(super) rpcs: Vec<RpcRow>,
}

/// What a process does.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// Calls that ended with a response, per second, whichever way they went.
    pub(super) calls: f64,
    /// Requests that came, per second.
    pub(super) served: f64,
    /// Megabytes of messages that the application got, per second.
    pub(super) megabytes: f64,
    /// Round trips in nanoseconds: median, 99th percentile.
    pub(super) rtt: [Option<u64>; 2],
    /// The same for serving.
    pub(super) serving: [Option<u64>; 2],
    /// RPCs that live, as client and as server.
    pub(super) rpcs: u64,
    /// Requests, and ends of calls, that wait for the application.
    pub(super) waiting: u64,
    /// Messages that wait for grants.
    pub(super) grantable: u64,
    /// Megabytes granted, per second.
    pub(super) granted: f64,
    /// Bytes granted and not received.
    pub(super) incoming: u64,
    /// Bytes that wait for transmission or acknowledgment.
    pub(super) sending: u64,
    /// Packets sent again, per second.
    pub(super) resent: f64,
    /// Cores that the process uses.
    pub(super) cores: f64,
    /// Canaries that sing.
    pub(super) canaries: usize,
}

impl Figures {
    fn of(change: &Change) -> Self {
        let gauge = |name| change.change.gauge(name);
        let quantiles = |name: &str| {
            let seen = change.change.histograms.get(name);
            [0.5, 0.99].map(|share| seen.and_then(|seen| seen.quantile(share)))
        };
        let bytes = change.change.histograms.get("message_bytes").map_or(0, |seen| seen.sum);
        Self {
            calls: change.rate("client_responses_done") + change.rate("local_calls"),
            served: change.rate("server_requests_done") + change.rate("local_requests"),
            megabytes: bytes as f64 / 1e6 / change.seconds,
            rtt: quantiles("call_nanos"),
            serving: quantiles("serve_nanos"),
            // Calls that go through memory are no RPCs of the protocol.
            rpcs: gauge("calls").max(gauge("client_rpcs")) + gauge("server_rpcs"),
            waiting: gauge("requests_waiting") + gauge("ends_waiting"),
            grantable: gauge("grantable"),
            granted: change.rate("granted_bytes") / 1e6,
            incoming: gauge("incoming_bytes"),
            sending: gauge("send_bytes"),
            resent: change.rate("resent_packets"),
            cores: change.cores,
            canaries: change.canaries().count(),
        }
    }
}

impl Model {
    /// Nothing was seen yet.
    pub(super) fn new(interval: f64) -> Self {
        Self {
            rows: Vec::new(),
            table: TableState::default(),
            selected: None,
            last: BTreeMap::new(),
            interval,
            held: false,
            looked: false,
        }
    }

    /// Takes a look over.
    pub(super) fn see(&mut self, look: Look) {
        if self.held {
            return;
        }
        self.looked = true;
        let mut last = BTreeMap::new();
        let mut rows = Vec::new();
        for seen in look {
            rows.push(self.row(&seen));
            if let Ok(snapshot) = seen.snapshot {
                last.insert(seen.pid, snapshot);
            }
        }
        self.last = last;
        self.rows = rows;
        self.find_selected();
    }

    fn row(&self, seen: &Seen) -> Row {
        let (about, figures) = match &seen.snapshot {
            Ok(now) => {
                let before = self.last.get(&seen.pid);
                let change = before.and_then(|before| Change::between(before, now));
                (about(now), change.as_ref().map(Figures::of))
            }
            Err(error) => (error.clone(), None),
        };
        Row { pid: seen.pid, about, figures, rpcs: seen.rpcs.clone() }
    }

    /// The selected process, if there is any.
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

    /// Points at the selected process where it is now; at the first one if it has gone.
    fn find_selected(&mut self) {
        let place = |pid| self.rows.iter().position(|row| row.pid == pid);
        let index = self.selected.and_then(place).unwrap_or(0);
        self.selected = self.rows.get(index).map(|row| row.pid);
        self.table.select(self.selected.map(|_| index));
    }

    /// Holds the picture, or lets it go on.
    pub(super) const fn hold(&mut self) {
        self.held = !self.held;
    }

    /// Makes the interval longer or shorter; how long it is then.
    pub(super) fn change_interval(&mut self, factor: f64) -> f64 {
        let (least, most) = INTERVALS;
        self.interval = (self.interval * factor).clamp(least, most);
        self.interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus::snapshot::Endpoint;

    fn seen(pid: u32, seconds: u64, calls: u64) -> Seen {
        let mut endpoint =
            Endpoint::new("127.0.0.1:4000".parse().unwrap(), &apus::Metrics::default());
        endpoint.counters.insert("client_responses_done".to_owned(), calls);
        endpoint.gauges.insert("client_rpcs".to_owned(), 3);
        let snapshot = Snapshot {
            pid,
            monotonic_nanos: seconds * 1_000_000_000,
            endpoints: vec![endpoint],
            ..Snapshot::default()
        };
        Seen { pid, snapshot: Ok(snapshot), rpcs: Vec::new() }
    }

    #[test]
    fn figures_are_known_from_the_second_look_on() {
        let mut model = Model::new(1.0);
        model.see(vec![seen(1, 10, 100)]);
        assert_eq!(model.rows[0].figures, None);
        model.see(vec![seen(1, 12, 300)]);
        let figures = model.rows[0].figures.clone().unwrap();
        assert_eq!((figures.calls, figures.rpcs), (100.0, 3));
    }

    #[test]
    fn a_process_stays_selected_when_others_come_and_go() {
        let mut model = Model::new(1.0);
        model.see(vec![seen(5, 1, 0), seen(7, 1, 0)]);
        assert_eq!(model.selected().map(|row| row.pid), Some(5));
        model.select_next();
        model.select_next();
        model.see(vec![seen(3, 2, 0), seen(5, 2, 0), seen(7, 2, 0)]);
        assert_eq!(
            (model.selected().map(|row| row.pid), model.table.selected()),
            (Some(7), Some(2))
        );
        model.see(vec![seen(3, 3, 0)]);
        assert_eq!(model.selected().map(|row| row.pid), Some(3));
        model.see(Vec::new());
        assert!(model.selected().is_none());
        model.select_previous();
        assert!(model.selected().is_none());
    }

    #[test]
    fn a_held_picture_does_not_change() {
        let mut model = Model::new(1.0);
        model.see(vec![seen(1, 1, 0)]);
        model.hold();
        model.see(vec![seen(1, 2, 0), seen(2, 2, 0)]);
        assert_eq!(model.rows.len(), 1);
        model.hold();
        model.see(vec![seen(1, 3, 0), seen(2, 3, 0)]);
        assert_eq!(model.rows.len(), 2);
        assert_eq!((model.change_interval(0.01), model.change_interval(1e9)), (0.1, 60.0));
    }

    #[test]
    fn a_process_that_does_not_answer_says_why() {
        let mut model = Model::new(1.0);
        let silent =
            Seen { pid: 9, snapshot: Err("process 9 did not answer".to_owned()), rpcs: Vec::new() };
        model.see(vec![silent]);
        assert_eq!(model.rows[0].about, "process 9 did not answer");
    }
}
