//! What has happened in a process between two looks?

use apus::snapshot::{Buckets, CANARIES, Canary, Endpoint, Snapshot};
use apus_lab::result::rounded;
use serde_json::{Map, Value, json};

/// The change, all endpoints of the process together.
pub(crate) struct Change {
    /// At the later look.
    pub(crate) now: Snapshot,
    /// Seconds between the looks.
    pub(crate) seconds: f64,
    /// What was counted in between; gauges as they stand.
    pub(crate) change: Endpoint,
    /// What was counted since the endpoints exist.
    pub(crate) total: Endpoint,
    /// Cores that the whole process has used.
    pub(crate) cores: f64,
}

/// Parts of the engine's work, with the counters of their time, and what they are.
pub(crate) const PARTS: [(&str, &str, &str); 4] = [
    ("receive", "receive_nanos", "taking what has arrived"),
    ("protocol", "protocol_nanos", "what the protocol makes of it"),
    ("send", "send_nanos", "making packets and sending them"),
    ("poll", "poll_nanos", "looking for something to do"),
];

impl Change {
    /// From one look to a later one; `None` if the process had no endpoints, or the looks are one and the same.
    pub(crate) fn between(before: &Snapshot, now: &Snapshot) -> Option<Self> {
        let nanos =
            now.monotonic_nanos.checked_sub(before.monotonic_nanos).filter(|nanos| *nanos > 0);
        // Across a restart of the machine the monotonic clock began anew.
        let millis = now.unix_millis.saturating_sub(before.unix_millis);
        let seconds = nanos.map_or(millis as f64 / 1e3, |nanos| nanos as f64 / 1e9);
        let change = now.since(before);
        Some(Self {
            seconds: if seconds > 0.0 { seconds } else { return None },
            cores: change.cpu_nanos as f64 / 1e9 / seconds,
            change: change.total()?,
            total: now.total()?,
            now: now.clone(),
        })
    }

    /// A change per second.
    pub(crate) fn rate(&self, name: &str) -> f64 {
        self.change.counter(name) as f64 / self.seconds
    }

    /// Cores used for a part of the engine's work. The parts are sampled by the wall clock, which goes on while others have
    /// the core; the process's time is exact. If they are more, they share it.
    pub(crate) fn part(&self, counter: &str) -> f64 {
        let parts: f64 = PARTS.iter().map(|(_, counter, _)| self.rate(counter) / 1e9).sum();
        let scale = if parts > self.cores { self.cores / parts } else { 1.0 };
        scale * self.rate(counter) / 1e9
    }

    /// Cores used for what is no part of the engine's work: the application, and calls on their way into the engine.
    pub(crate) fn rest(&self) -> f64 {
        let parts: f64 = PARTS.iter().map(|(_, counter, _)| self.part(counter)).sum();
        (self.cores - parts).max(0.0)
    }

    /// Counters that have changed.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (&str, u64)> {
        let changed = self.change.counters.iter().filter(|(_, change)| **change > 0);
        changed.map(|(name, change)| (name.as_str(), *change))
    }

    /// Share of the messages that were received in this way.
    pub(crate) fn share(&self, name: &str) -> f64 {
        self.per_message(name)
    }

    /// How many there were for each message that the application got.
    pub(crate) fn per_message(&self, name: &str) -> f64 {
        let messages = self.change.counter("messages");
        if messages == 0 { 0.0 } else { self.change.counter(name) as f64 / messages as f64 }
    }

    /// Messages that waited for grants, on average.
    pub(crate) fn grantable(&self) -> f64 {
        self.rate("grantable_integral_nanos") / 1e9
    }

    /// Canaries that are not zero: change and total.
    pub(crate) fn canaries(&self) -> impl Iterator<Item = (&'static Canary, u64, u64)> {
        let values = |canary: &'static Canary| {
            (canary, self.change.counter(canary.name), self.total.counter(canary.name))
        };
        CANARIES.iter().map(values).filter(|(_, _, total)| *total > 0)
    }

    /// Histograms with values in them.
    pub(crate) fn histograms(&self) -> impl Iterator<Item = (&str, &Buckets)> {
        let all = self.change.histograms.iter().filter(|(name, seen)| {
            // Those of OpenTelemetry say the same, with less detail.
            seen.count() > 0 && !name.starts_with("rpc_")
        });
        all.map(|(name, seen)| (name.as_str(), seen))
    }

    /// The same for machines.
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
        let histogram = |(name, seen): (&str, &Buckets)| {
            let [p50, p99] = [0.5, 0.99].map(|share| seen.quantile(share));
            let mean = seen.mean().map(rounded);
            (
                name.to_owned(),
                json!({ "count": seen.count(), "mean": mean, "p50": p50, "p99": p99 }),
            )
        };
        let histograms: Map<_, _> = self.histograms().map(histogram).collect();
        let canary = |(canary, change, value): (&Canary, u64, u64)| json!({ "name": canary.name, "change": change, "value": value, "meaning": canary.meaning });
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
                "immediately": rounded(self.share("wait_none")),
                "polling": rounded(self.share("wait_polled")),
                "asleep": rounded(self.share("wait_slept")),
                "handoffs_per_message": rounded(self.per_message("handoffs")),
                "wakeups_per_message": rounded(self.per_message("wakeups")),
            },
            "grantable": rounded(self.grantable()),
            "histograms": histograms,
            "canaries": self.canaries().map(canary).collect::<Vec<_>>(),
            "gauges": self.change.gauges,
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
        let endpoint =
            Endpoint { address, counters, gauges: BTreeMap::new(), histograms: BTreeMap::new() };
        Snapshot {
            monotonic_nanos: seconds * 1_000_000_000,
            cpu_nanos: seconds * 500_000_000,
            endpoints: vec![endpoint],
            ..Snapshot::default()
        }
    }

    #[test]
    fn rates_cores_and_shares_are_of_the_interval() {
        let before = snapshot(10, &[("messages", 100), ("wait_polled", 100), ("send_nanos", 0)]);
        let later = [
            ("messages", 500),
            ("wait_polled", 200),
            ("wait_slept", 300),
            ("send_nanos", 400_000_000),
        ];
        let change = Change::between(&before, &snapshot(12, &later)).unwrap();
        assert_eq!((change.rate("messages"), change.cores), (200.0, 0.5));
        assert_eq!((change.part("send_nanos"), change.part("poll_nanos")), (0.2, 0.0));
        assert!((change.rest() - 0.3).abs() < 1e-9);
        assert_eq!((change.share("wait_polled"), change.share("wait_slept")), (0.25, 0.75));
        let changed: Vec<_> = change.changed().map(|(name, _)| name).collect();
        assert_eq!(changed, ["messages", "send_nanos", "wait_polled", "wait_slept"]);
    }

    #[test]
    fn parts_are_never_more_than_the_process() {
        let later = [("send_nanos", 600_000_000), ("poll_nanos", 200_000_000)];
        let change = Change::between(&snapshot(1, &[]), &snapshot(2, &later)).unwrap();
        assert_eq!((change.part("send_nanos"), change.part("poll_nanos")), (0.375, 0.125));
        assert_eq!((change.cores, change.rest()), (0.5, 0.0));
    }

    #[test]
    fn a_canary_that_sang_before_is_remembered() {
        let before = snapshot(1, &[("rpc_timeouts", 3)]);
        let change = Change::between(&before, &snapshot(2, &[("rpc_timeouts", 3)])).unwrap();
        let sang: Vec<_> =
            change.canaries().map(|(canary, new, all)| (canary.name, new, all)).collect();
        assert_eq!(sang, [("rpc_timeouts", 0, 3)]);
        assert_eq!(change.json()["canaries"][0]["value"], 3);
    }

    #[test]
    fn without_time_or_endpoints_there_is_no_change() {
        assert!(Change::between(&snapshot(1, &[]), &snapshot(1, &[])).is_none());
        let nothing = Snapshot { endpoints: Vec::new(), ..snapshot(2, &[]) };
        assert!(Change::between(&snapshot(1, &[]), &nothing).is_none());
    }
}
