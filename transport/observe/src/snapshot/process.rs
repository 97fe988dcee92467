//! Counters of all endpoints of a process.

use super::{ApplicationFamily, EndpointSnapshot, FamilyKind};

/// The counters of all endpoints of a process, at one time or, as a result of [`Snapshot::since`],
/// over a period.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Snapshot {
    /// Version of apus in the process.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// Name of the program.
    pub program: String,
    /// Time of the snapshot in nanoseconds of the system's monotonic clock; the length of a period.
    pub monotonic_nanos: u64,
    /// Time of the snapshot in milliseconds since 1970; the length of a period by that clock.
    pub unix_millis: u64,
    /// Processor time of all threads of the process, in nanoseconds, since its start or in a
    /// period.
    pub cpu_nanos: u64,
    /// The counters of each endpoint.
    pub endpoints: Vec<EndpointSnapshot>,
    /// Counters and gauges that the application has published.
    pub application: Vec<ApplicationFamily>,
    /// Whether the process did not respond. It has no counters then; Prometheus reads `apus_up` 0.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub unresponsive: bool,
}

impl Snapshot {
    /// Returns the change since `before`, endpoint by endpoint. Endpoints that `before` lacks count
    /// in full. The times of the result are the lengths of the period, so a rate is a counter
    /// divided by `monotonic_nanos`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let endpoint = |now: &EndpointSnapshot| {
            let earlier = before.endpoints.iter().find(|earlier| earlier.is_same_place(now));
            earlier.map_or_else(|| now.clone(), |earlier| now.since(earlier))
        };
        let family = |now: &ApplicationFamily| {
            let earlier = before.application.iter().find(|earlier| earlier.name == now.name);
            earlier.map_or_else(|| now.clone(), |earlier| now.since(earlier))
        };
        Self {
            monotonic_nanos: self.monotonic_nanos.saturating_sub(before.monotonic_nanos),
            unix_millis: self.unix_millis.saturating_sub(before.unix_millis),
            cpu_nanos: self.cpu_nanos.saturating_sub(before.cpu_nanos),
            endpoints: self.endpoints.iter().map(endpoint).collect(),
            application: self.application.iter().map(family).collect(),
            ..self.clone()
        }
    }

    /// Returns the sum of all endpoints, gauges included, with the values that the application has
    /// published. It has the address of the first endpoint. `None` if there are no endpoints.
    #[must_use]
    pub fn total(&self) -> Option<EndpointSnapshot> {
        let (first, others) = self.endpoints.split_first()?;
        let mut total = first.clone();
        others.iter().for_each(|other| total.add(other));
        for family in &self.application {
            match family.kind {
                FamilyKind::Counter => total.counters.extend(family.named()),
                FamilyKind::Gauge => total.gauges.extend(family.named()),
                FamilyKind::Histogram => {}
            }
        }
        Some(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metrics;

    fn endpoint(calls: u64) -> EndpointSnapshot {
        let mut metrics = Metrics::default();
        metrics.protocol.progress.client_responses_done = calls;
        metrics.protocol.packets_sent[0] = 2 * calls;
        metrics.protocol.live.peers = 3;
        (0..calls).for_each(|_| metrics.protocol.calls.answered.record(6_000, 1));
        EndpointSnapshot::new("127.0.0.1:4000".parse().unwrap(), &metrics)
    }

    fn snapshot(calls: u64) -> Snapshot {
        let time = 1_000 * calls;
        Snapshot { monotonic_nanos: time, endpoints: vec![endpoint(calls)], ..Default::default() }
    }

    #[test]
    fn counters_are_subtracted_and_gauges_are_not() {
        let change = snapshot(5).since(&snapshot(2));
        assert_eq!(change.monotonic_nanos, 3_000);
        let endpoint = &change.endpoints[0];
        assert_eq!(endpoint.counter("client_responses_done"), 3);
        assert_eq!(endpoint.counter("packets_sent.data"), 6);
        assert_eq!(endpoint.sum("packets_sent"), 6);
        assert_eq!(endpoint.gauge("peers"), 3, "a current value");
        assert_eq!(endpoint.histograms["call_nanos"].count(), 3);
    }

    #[test]
    fn an_endpoint_that_was_restarted_counts_in_full() {
        let change = snapshot(2).since(&snapshot(5));
        assert_eq!(change.endpoints[0].counter("client_responses_done"), 2);
        assert_eq!(change.endpoints[0].histograms["call_nanos"].count(), 2);
    }

    #[test]
    fn endpoints_add_up() {
        let both = Snapshot { endpoints: vec![endpoint(1), endpoint(4)], ..Default::default() };
        let total = both.total().unwrap();
        assert_eq!((total.counter("client_responses_done"), total.gauge("peers")), (5, 6));
        assert_eq!(total.histograms["call_nanos"].count(), 5);
        assert_eq!(Snapshot::default().total(), None);
    }

    #[cfg(feature = "serde")]
    #[test]
    fn a_snapshot_survives_serialisation() {
        let text = serde_json::to_string(&snapshot(7)).unwrap();
        assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), snapshot(7));
        // From a version with fewer fields, and with unknown ones.
        let other = r#"{"pid":5,"color":"red","endpoints":[{"address":"[::1]:7"}]}"#;
        let other: Snapshot = serde_json::from_str(other).unwrap();
        assert_eq!((other.pid, other.endpoints[0].counter("messages")), (5, 0));
    }
}
