//! Counters for the recorder that a program has installed for the `metrics` facade.
//!
//! Counters and gauges are named `apus.NAME` and labelled with the endpoint's address as `endpoint`
//! and with the family's label. Durations of RPCs have OpenTelemetry's names,
//! `rpc.client.call.duration` and `rpc.server.call.duration`, in seconds. They come from a
//! histogram: each is reported as the upper bound of its bucket, at most 12.5 % too long.

use crate::Metrics;
use crate::snapshot::{
    Buckets, EndpointSnapshot, Family, FamilyKind, MemberValue, families, members,
};
use metrics::{Label, Unit, counter, gauge, histogram};
use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;

/// Reports counters to the recorder of the `metrics` facade.
#[derive(Debug, Default)]
pub struct Publisher {
    /// The last published values per endpoint.
    last: BTreeMap<SocketAddr, EndpointSnapshot>,
    /// Families that were described to the recorder.
    described: HashSet<String>,
}

impl Publisher {
    /// Publishes the changes of the counters of the endpoint at `address` since the last call with
    /// that address.
    pub fn publish(&mut self, address: SocketAddr, metrics: &Metrics) {
        let now = EndpointSnapshot::new(address, metrics);
        let change = self.last.get(&address).map_or_else(|| now.clone(), |last| now.since(last));
        for family in families() {
            self.describe(&family);
            publish(&family, &change);
        }
        self.last.insert(address, now);
    }

    /// Describes a family to the recorder, once.
    fn describe(&mut self, family: &Family) {
        if !self.described.insert(family.name.clone()) {
            return;
        }
        let (name, help) = (name(family), family.help.clone());
        match (family.kind, unit(family)) {
            (FamilyKind::Counter, Some(unit)) => metrics::describe_counter!(name, unit, help),
            (FamilyKind::Counter, None) => metrics::describe_counter!(name, help),
            (FamilyKind::Gauge, Some(unit)) => metrics::describe_gauge!(name, unit, help),
            (FamilyKind::Gauge, None) => metrics::describe_gauge!(name, help),
            (FamilyKind::Histogram, _) => {
                let unit = unit(family).unwrap_or(Unit::Seconds);
                metrics::describe_histogram!(name, unit, help);
            }
        }
    }
}

/// Returns the name of a family in the facade.
fn name(family: &Family) -> String {
    match family.name.as_str() {
        "rpc_client_call_duration" => "rpc.client.call.duration".to_owned(),
        "rpc_server_call_duration" => "rpc.server.call.duration".to_owned(),
        name => format!("apus.{name}"),
    }
}

fn unit(family: &Family) -> Option<Unit> {
    if family.name.ends_with("_nanos") {
        Some(Unit::Nanoseconds)
    } else if family.name.ends_with("_bytes") {
        Some(Unit::Bytes)
    } else {
        None
    }
}

/// Publishes the members of a family.
fn publish(family: &Family, change: &EndpointSnapshot) {
    let name = name(family);
    let labels = |member: &str| {
        let endpoint = Label::new("endpoint", change.address.to_string());
        let own = family.label.map(|label| Label::new(label, member.to_owned()));
        [endpoint].into_iter().chain(own).collect::<Vec<_>>()
    };
    for (member, value) in members(change, family) {
        match value {
            MemberValue::Counter(count) => counter!(name.clone(), labels(member)).increment(count),
            MemberValue::Gauge(value) => gauge!(name.clone(), labels(member)).set(value as f64),
            MemberValue::Histogram(buckets) if name.starts_with("rpc.") => {
                rpcs(&name, member, change, buckets);
            }
            MemberValue::Histogram(buckets) => {
                record(&histogram!(name.clone(), labels(member)), buckets, 1.0);
            }
        }
    }
}

/// Publishes durations of RPCs with OpenTelemetry's attributes. Successful RPCs are taken from a
/// histogram that is finer than OpenTelemetry's buckets.
fn rpcs(name: &str, member: &str, change: &EndpointSnapshot, coarse: &Buckets) {
    let is_server = name.contains("server");
    let fine = if is_server { "serve_nanos" } else { "call_nanos" };
    let mut labels = vec![Label::new("rpc.system.name", "apus")];
    if is_server {
        labels.push(Label::new("server.address", change.address.ip().to_string()));
        labels.push(Label::new("server.port", change.address.port().to_string()));
    }
    let buckets = if member == "ok" {
        change.histograms.get(fine).unwrap_or(coarse)
    } else {
        labels.push(Label::new("error.type", member.to_owned()));
        coarse
    };
    record(&histogram!(name.to_owned(), labels), buckets, 1e-9);
}

fn record(histogram: &metrics::Histogram, buckets: &Buckets, scale: f64) {
    // Values of the bucket without a bound count as the last bound.
    let last = buckets.buckets.iter().filter_map(|(upto, _)| *upto).next_back().unwrap_or(0);
    for (upto, count) in &buckets.buckets {
        histogram.record_many(upto.unwrap_or(last) as f64 * scale, *count as usize);
    }
}
