//! Activity: counter changes of a process between two snapshots, as rates, shares and cores used.

use apus::introspection::Senders;
use apus::snapshot::{Buckets, CANARIES, Canary, EndpointSnapshot, Snapshot};
use apus_report::result::rounded;
use serde_json::{Map, Value, json};

/// The activity of all endpoints of a process between two snapshots.
pub(crate) struct Activity {
    /// The later snapshot.
    pub(crate) now: Snapshot,
    /// Seconds between the snapshots.
    pub(crate) seconds: f64,
    /// Differences of counters and histograms, and the later values of gauges.
    pub(crate) change: EndpointSnapshot,
    /// For each shard of a sharded endpoint: differences of counters and histograms, and the later
    /// values of gauges.
    pub(crate) shards: Vec<EndpointSnapshot>,
    /// Values of the later snapshot, counted since the endpoints were opened.
    pub(crate) total: EndpointSnapshot,
    /// Cores used by the whole process, on average.
    pub(crate) cores: f64,
    /// The peers with arriving messages at the time of the later snapshot; `None` if not
    /// requested.
    pub(crate) senders: Option<Senders>,
}

/// Parts of the engine's work: name, counter of their time, and meaning.
pub(crate) const PARTS: [(&str, &str, &str); 4] = [
    ("receive", "receive_nanos", "reading packets that have arrived"),
    ("protocol", "protocol_nanos", "handling them in the protocol"),
    ("send", "send_nanos", "building and sending packets"),
    ("poll", "poll_nanos", "polling for work"),
];

impl Activity {
    /// Returns the activity between two snapshots; `None` if the process has no endpoints, or if no
    /// time passed.
    pub(crate) fn between(before: &Snapshot, now: &Snapshot) -> Option<Self> {
        let nanos =
            now.monotonic_nanos.checked_sub(before.monotonic_nanos).filter(|nanos| *nanos > 0);
        // The monotonic clock restarts with the machine; only the calendar clock remains usable
        // then.
        let millis = now.unix_millis.saturating_sub(before.unix_millis);
        let seconds = nanos.map_or(millis as f64 / 1e3, |nanos| nanos as f64 / 1e9);
        let change = now.since(before);
        Some(Self {
            seconds: if seconds > 0.0 { seconds } else { return None },
            cores: change.cpu_nanos as f64 / 1e9 / seconds,
            shards: change.endpoints.iter().filter(|one| one.shard.is_some()).cloned().collect(),
            change: change.total()?,
            total: now.total()?,
            now: now.clone(),
            senders: None,
        })
    }

    /// Returns the activity of one of [`Activity::shards`]. The cores count for the whole process.
    pub(crate) fn of_shard(&self, shard: &EndpointSnapshot) -> Self {
        Self {
            now: self.now.clone(),
            seconds: self.seconds,
            change: shard.clone(),
            shards: Vec::new(),
            total: shard.clone(),
            cores: self.cores,
            senders: None,
        }
    }

    /// Returns the change of a counter per second.
    pub(crate) fn rate(&self, name: &str) -> f64 {
        self.change.counter(name) as f64 / self.seconds
    }

    /// Returns the cores used by a part of the engine's work. The parts are sampled with the wall
    /// clock, which also runs while other processes have the core, whereas the processor time of
    /// the process is exact. Parts that add up to more than the process total are scaled down to
    /// it.
    pub(crate) fn part(&self, counter: &str) -> f64 {
        let parts: f64 = PARTS.iter().map(|(_, counter, _)| self.rate(counter) / 1e9).sum();
        let scale = if parts > self.cores { self.cores / parts } else { 1.0 };
        scale * self.rate(counter) / 1e9
    }

    /// Returns the cores used outside the engine's work: by the application, and by calls before
    /// they enter the engine.
    pub(crate) fn rest(&self) -> f64 {
        let parts: f64 = PARTS.iter().map(|(_, counter, _)| self.part(counter)).sum();
        (self.cores - parts).max(0.0)
    }

    /// Returns the changed counters, with their change.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (&str, u64)> {
        let changed = self.change.counters.iter().filter(|(_, change)| **change > 0);
        changed.map(|(name, change)| (name.as_str(), *change))
    }

    /// Returns the change of a counter for each message delivered to the application; 0 without
    /// messages.
    pub(crate) fn per_message(&self, name: &str) -> f64 {
        let messages = self.change.counter("messages");
        if messages == 0 { 0.0 } else { self.change.counter(name) as f64 / messages as f64 }
    }

    /// Returns the average number of messages waiting for grants.
    pub(crate) fn grantable(&self) -> f64 {
        self.rate("grantable_integral_nanos") / 1e9
    }

    /// Returns the nonzero canaries, with their change and their total.
    pub(crate) fn canaries(&self) -> impl Iterator<Item = (&'static Canary, u64, u64)> {
        let values = |canary: &'static Canary| {
            (canary, self.change.counter(canary.name), self.total.counter(canary.name))
        };
        CANARIES.iter().map(values).filter(|(_, _, total)| *total > 0)
    }

    /// Returns the histograms with new values.
    pub(crate) fn histograms(&self) -> impl Iterator<Item = (&str, &Buckets)> {
        let all = self.change.histograms.iter().filter(|(name, values)| {
            // The histograms for OpenTelemetry (`rpc_…`) repeat others in less detail.
            values.count() > 0 && !name.starts_with("rpc_")
        });
        all.map(|(name, values)| (name.as_str(), values))
    }

    /// Returns the activity as JSON.
    pub(crate) fn json(&self) -> Value {
        let counter = |(name, change): (&str, u64)| {
            let per_second = rounded(change as f64 / self.seconds);
            let value = self.total.counter(name);
            (name.to_owned(), json!({ "value": value, "change": change, "per_second": per_second }))
        };
        let counters: Map<_, _> = self.changed().map(counter).collect();
        let part = |&(name, counter, _): &(&str, &str, &str)| {
            (name.to_owned(), json!(rounded(self.part(counter))))
        };
        let mut cores: Map<_, _> = PARTS.iter().map(part).collect();
        cores.insert("rest".to_owned(), json!(rounded(self.rest())));
        cores.insert("process".to_owned(), json!(rounded(self.cores)));
        let histogram = |(name, values): (&str, &Buckets)| {
            let [p50, p99] = [0.5, 0.99].map(|share| values.quantile(share));
            let mean = values.mean().map(rounded);
            (
                name.to_owned(),
                json!({ "count": values.count(), "mean": mean, "p50": p50, "p99": p99 }),
            )
        };
        let histograms: Map<_, _> = self.histograms().map(histogram).collect();
        let canary = |(canary, change, value): (&Canary, u64, u64)| {
            let Canary { name, meaning, .. } = canary;
            json!({ "name": name, "change": change, "value": value, "meaning": meaning })
        };
        let addresses: Vec<_> = self.now.endpoints.iter().map(|one| one.address).collect();
        json!({
            "pid": self.now.pid,
            "program": self.now.program,
            "version": self.now.version,
            "endpoints": addresses,
            "seconds": rounded(self.seconds),
            "cores": cores,
            "received": {
                "messages_per_second": rounded(self.rate("messages")),
                "immediately": rounded(self.per_message("wait_none")),
                "polling": rounded(self.per_message("wait_polled")),
                "asleep": rounded(self.per_message("wait_slept")),
                "handoffs_per_message": rounded(self.per_message("handoffs")),
                "wakeups_per_message": rounded(self.per_message("wakeups")),
            },
            "grantable": rounded(self.grantable()),
            "histograms": histograms,
            "canaries": self.canaries().map(canary).collect::<Vec<_>>(),
            "gauges": self.change.gauges,
            "senders": self.senders,
            "counters": counters,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn snapshot(seconds: u64, counters: &[(&str, u64)]) -> Snapshot {
        let counters: BTreeMap<_, _> =
            counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let address = "127.0.0.1:4000".parse().unwrap();
        let endpoint = EndpointSnapshot {
            address,
            shard: None,
            counters,
            gauges: BTreeMap::new(),
            histograms: BTreeMap::new(),
        };
        Snapshot {
            monotonic_nanos: seconds * 1_000_000_000,
            cpu_nanos: seconds * 500_000_000,
            endpoints: vec![endpoint],
            ..Snapshot::default()
        }
    }

    #[test]
    fn rates_cores_and_shares_refer_to_the_interval() {
        let before = snapshot(10, &[("messages", 100), ("wait_polled", 100), ("send_nanos", 0)]);
        let later = [
            ("messages", 500),
            ("wait_polled", 200),
            ("wait_slept", 300),
            ("send_nanos", 400_000_000),
        ];
        let activity = Activity::between(&before, &snapshot(12, &later)).unwrap();
        assert_eq!((activity.rate("messages"), activity.cores), (200.0, 0.5));
        assert_eq!((activity.part("send_nanos"), activity.part("poll_nanos")), (0.2, 0.0));
        assert!((activity.rest() - 0.3).abs() < 1e-9);
        assert_eq!(
            (activity.per_message("wait_polled"), activity.per_message("wait_slept")),
            (0.25, 0.75)
        );
        let changed: Vec<_> = activity.changed().map(|(name, _)| name).collect();
        assert_eq!(changed, ["messages", "send_nanos", "wait_polled", "wait_slept"]);
    }

    #[test]
    fn parts_never_add_up_to_more_than_the_process() {
        let later = [("send_nanos", 600_000_000), ("poll_nanos", 200_000_000)];
        let activity = Activity::between(&snapshot(1, &[]), &snapshot(2, &later)).unwrap();
        assert_eq!((activity.part("send_nanos"), activity.part("poll_nanos")), (0.375, 0.125));
        assert_eq!((activity.cores, activity.rest()), (0.5, 0.0));
    }

    #[test]
    fn a_canary_that_counted_earlier_is_still_reported() {
        let before = snapshot(1, &[("rpc_timeouts", 3)]);
        let activity = Activity::between(&before, &snapshot(2, &[("rpc_timeouts", 3)])).unwrap();
        let canaries: Vec<_> =
            activity.canaries().map(|(canary, new, all)| (canary.name, new, all)).collect();
        assert_eq!(canaries, [("rpc_timeouts", 0, 3)]);
        assert_eq!(activity.json()["canaries"][0]["value"], 3);
    }

    #[test]
    fn without_time_or_endpoints_there_is_no_activity() {
        assert!(Activity::between(&snapshot(1, &[]), &snapshot(1, &[])).is_none());
        let nothing = Snapshot { endpoints: Vec::new(), ..snapshot(2, &[]) };
        assert!(Activity::between(&snapshot(1, &[]), &nothing).is_none());
    }
}
