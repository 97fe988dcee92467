//! What did a process count up to a moment, in a form that can be kept and compared?
//!
//! [`crate::Metrics`] has a field for each counter; a [`Snapshot`] has their names, so that it can be written into a file,
//! read by another version, and held against a later one. [`FAMILIES`](families()) says what each name means.
//!
//! A name like `packets_sent.data` is one of the family `packets_sent`, whose members differ in their type.

mod buckets;
mod canaries;
mod families;
mod values;

pub use buckets::Buckets;
pub use canaries::{CANARIES, Canary};
pub use families::{Family, FamilyKind, families};

use crate::metrics::Metrics;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The counters of all endpoints of a process.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "introspection", derive(serde::Serialize, serde::Deserialize), serde(default))]
pub struct Snapshot {
    /// Version of apus that counted.
    pub version: String,
    /// The process.
    pub pid: u32,
    /// Name of its program.
    pub program: String,
    /// When, in nanoseconds of the system's monotonic clock: what differences are divided by.
    pub monotonic_nanos: u64,
    /// When, in milliseconds since 1970.
    pub unix_millis: u64,
    /// Nanoseconds of processor time that the process has used, all threads together.
    pub cpu_nanos: u64,
    /// Its endpoints.
    pub endpoints: Vec<EndpointSnapshot>,
}

/// The counters of one endpoint.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "introspection", derive(serde::Serialize, serde::Deserialize))]
pub struct EndpointSnapshot {
    /// Where it is.
    pub address: SocketAddr,
    /// What only grows.
    #[cfg_attr(feature = "introspection", serde(default))]
    pub counters: BTreeMap<String, u64>,
    /// What stands at the moment.
    #[cfg_attr(feature = "introspection", serde(default))]
    pub gauges: BTreeMap<String, u64>,
    /// How often which values were seen.
    #[cfg_attr(feature = "introspection", serde(default))]
    pub histograms: BTreeMap<String, Buckets>,
}

impl EndpointSnapshot {
    /// The counters of an endpoint at `address`.
    #[must_use]
    pub fn new(address: SocketAddr, metrics: &Metrics) -> Self {
        let named = |pairs: Vec<(String, u64)>| pairs.into_iter().collect();
        Self {
            address,
            counters: named(values::counters(metrics)),
            gauges: named(values::gauges(metrics)),
            histograms: values::histograms(metrics).into_iter().collect(),
        }
    }

    /// What was counted since `before`; gauges stay as they are. What `before` does not know, or knows more of, as
    /// another endpoint at the same address may, counts as a whole.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut change = self.clone();
        for (name, value) in &mut change.counters {
            let earlier = before.counters.get(name).copied().unwrap_or(0);
            *value = value.checked_sub(earlier).unwrap_or(*value);
        }
        for (name, buckets) in &mut change.histograms {
            if let Some(earlier) = before.histograms.get(name) {
                *buckets = buckets.since(earlier);
            }
        }
        change
    }

    /// Adds all that another endpoint has.
    pub fn add(&mut self, other: &Self) {
        for (name, value) in &other.counters {
            *self.counters.entry(name.clone()).or_default() += value;
        }
        for (name, value) in &other.gauges {
            *self.gauges.entry(name.clone()).or_default() += value;
        }
        for (name, buckets) in &other.histograms {
            self.histograms.entry(name.clone()).or_default().add(buckets);
        }
    }

    /// The value of a counter; 0 if it is not known.
    #[must_use]
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// The value of a gauge; 0 if it is not known.
    #[must_use]
    pub fn gauge(&self, name: &str) -> u64 {
        self.gauges.get(name).copied().unwrap_or(0)
    }

    /// All counters of a family together.
    #[must_use]
    pub fn sum(&self, family: &str) -> u64 {
        let member = |name: &str| name.split_once('.').map_or(name, |(family, _)| family) == family;
        self.counters.iter().filter(|(name, _)| member(name)).map(|(_, value)| value).sum()
    }
}

impl Snapshot {
    /// What was counted since `before`, endpoint by endpoint; those that `before` does not know count as a whole. The
    /// times are differences, too.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let endpoint = |now: &EndpointSnapshot| {
            let earlier = before.endpoints.iter().find(|earlier| earlier.address == now.address);
            earlier.map_or_else(|| now.clone(), |earlier| now.since(earlier))
        };
        Self {
            monotonic_nanos: self.monotonic_nanos.saturating_sub(before.monotonic_nanos),
            unix_millis: self.unix_millis.saturating_sub(before.unix_millis),
            cpu_nanos: self.cpu_nanos.saturating_sub(before.cpu_nanos),
            endpoints: self.endpoints.iter().map(endpoint).collect(),
            ..self.clone()
        }
    }

    /// All endpoints as if they were one; its address is that of the first one.
    #[must_use]
    pub fn total(&self) -> Option<EndpointSnapshot> {
        let (first, others) = self.endpoints.split_first()?;
        let mut total = first.clone();
        others.iter().for_each(|other| total.add(other));
        Some(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn differences_are_of_what_grows() {
        let change = snapshot(5).since(&snapshot(2));
        assert_eq!(change.monotonic_nanos, 3_000);
        let endpoint = &change.endpoints[0];
        assert_eq!(endpoint.counter("client_responses_done"), 3);
        assert_eq!(endpoint.counter("packets_sent.data"), 6);
        assert_eq!(endpoint.sum("packets_sent"), 6);
        assert_eq!(endpoint.gauge("peers"), 3, "stands as it stands");
        assert_eq!(endpoint.histograms["call_nanos"].count(), 3);
    }

    #[test]
    fn an_endpoint_that_began_anew_counts_as_a_whole() {
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

    #[cfg(feature = "introspection")]
    #[test]
    fn what_is_written_can_be_read() {
        let text = serde_json::to_string(&snapshot(7)).unwrap();
        assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), snapshot(7));
        // Of a version that knows less, or more.
        let other = r#"{"pid":5,"color":"red","endpoints":[{"address":"[::1]:7"}]}"#;
        let other: Snapshot = serde_json::from_str(other).unwrap();
        assert_eq!((other.pid, other.endpoints[0].counter("messages")), (5, 0));
    }
}
