//! What does Prometheus call the counters?
//!
//! `apus_NAME_total` with the label of the family and the endpoint's address. Units are its base units: nanoseconds become seconds.
//! The durations of RPCs that OpenTelemetry has names for have those names.

use crate::snapshot::{Buckets, EndpointSnapshot, Family, FamilyKind, Snapshot, families};
use apus_proto::COARSE_BOUNDS;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use std::collections::BTreeMap;
use std::fmt;

const NANOS: f64 = 1e9;

/// All families of some snapshots.
#[derive(Debug)]
pub(super) struct Families {
    pub(super) snapshots: Vec<Snapshot>,
    pub(super) by_process: bool,
}

type Labels = Vec<(&'static str, String)>;

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for family in families() {
            if family.name.starts_with("rpc_") {
                self.encode_otel(&family, &mut encoder)?;
            } else {
                self.encode_family(&family, &mut encoder)?;
            }
        }
        let help = "Processor time that the process has used, all threads together.";
        let seconds = Unit::Seconds;
        let mut cpu = encoder.encode_descriptor(
            "apus_process_cpu",
            help,
            Some(&seconds),
            MetricType::Counter,
        )?;
        for snapshot in &self.snapshots {
            let labels = self.labels(snapshot, &[]);
            counter(&mut cpu, &labels, snapshot.cpu_nanos as f64 / NANOS)?;
        }
        Ok(())
    }
}

impl Families {
    /// The labels of a value: those given, and which process it is of, if that is to be said.
    fn labels(&self, snapshot: &Snapshot, labels: &[(&'static str, String)]) -> Labels {
        let mut labels = labels.to_vec();
        if self.by_process {
            labels.push(("pid", snapshot.pid.to_string()));
            labels.push(("program", snapshot.program.clone()));
        }
        labels
    }

    fn encode_family(&self, family: &Family, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Named { name, unit, scale } = named(family);
        let sort = match family.sort {
            FamilyKind::Counter => MetricType::Counter,
            FamilyKind::Gauge => MetricType::Gauge,
            FamilyKind::Histogram => MetricType::Histogram,
        };
        let mut metric = encoder.encode_descriptor(&name, &family.help, unit.as_ref(), sort)?;
        for snapshot in &self.snapshots {
            for endpoint in &snapshot.endpoints {
                let address = ("endpoint", endpoint.address.to_string());
                for (member, value) in members(endpoint, family) {
                    let own = family.label.map(|label| (label, member.to_owned()));
                    let labels: Labels = [address.clone()].into_iter().chain(own).collect();
                    let labels = self.labels(snapshot, &labels);
                    match value {
                        Value::Count(count) => counter(&mut metric, &labels, count as f64 / scale)?,
                        Value::Stand(value) => {
                            metric.encode_family(&labels)?.encode_gauge(&value)?;
                        }
                        Value::Seen(buckets) => {
                            let bounds = bounds(&family.name);
                            histogram(&mut metric, &labels, buckets, bounds.into_iter(), scale)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The families of OpenTelemetry, which know processes and services but no endpoints: those of clients are added up.
    fn encode_otel(&self, family: &Family, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let is_server = family.name.contains("server");
        let seconds = Unit::Seconds;
        let name = &family.name;
        let mut metric =
            encoder.encode_descriptor(name, &family.help, Some(&seconds), MetricType::Histogram)?;
        for snapshot in &self.snapshots {
            let mut all: BTreeMap<Labels, EndpointSnapshot> = BTreeMap::new();
            for endpoint in &snapshot.endpoints {
                let mut labels = vec![("rpc_system_name", "apus".to_owned())];
                if is_server {
                    labels.push(("server_address", endpoint.address.ip().to_string()));
                    labels.push(("server_port", endpoint.address.port().to_string()));
                }
                let others = all.entry(labels);
                others.and_modify(|sum| sum.add(endpoint)).or_insert_with(|| endpoint.clone());
            }
            for (labels, endpoint) in &all {
                for (member, value) in members(endpoint, family) {
                    let Value::Seen(buckets) = value else { continue };
                    let failed = (member != "ok").then(|| ("error_type", member.to_owned()));
                    let labels: Labels = labels.iter().cloned().chain(failed).collect();
                    let labels = self.labels(snapshot, &labels);
                    histogram(&mut metric, &labels, buckets, COARSE_BOUNDS.into_iter(), NANOS)?;
                }
            }
        }
        Ok(())
    }
}

/// What Prometheus calls a family.
struct Named {
    name: String,
    unit: Option<Unit>,
    /// By what its values are divided.
    scale: f64,
}

fn named(family: &Family) -> Named {
    let (stem, unit, scale) = match family.name.strip_suffix("_nanos") {
        Some(stem) => (stem, Some(Unit::Seconds), NANOS),
        None => match family.name.strip_suffix("_bytes") {
            Some(stem) => (stem, Some(Unit::Bytes), 1.0),
            None => (&family.name[..], None, 1.0),
        },
    };
    let stem = match stem {
        // What takes time has a name that says so.
        "call" | "serve" => format!("{stem}_duration"),
        "message" => "message_size".to_owned(),
        stem => stem.to_owned(),
    };
    Named { name: format!("apus_{stem}"), unit, scale }
}

/// A value of a family.
enum Value<'a> {
    Count(u64),
    Stand(u64),
    Seen(&'a Buckets),
}

/// The members of a family that an endpoint has, by what they differ in.
fn members<'a>(endpoint: &'a EndpointSnapshot, family: &'a Family) -> Vec<(&'a str, Value<'a>)> {
    let member = |name: &'a str| match name.split_once('.') {
        Some((own, member)) => (own == family.name).then_some(member),
        None => (name == family.name).then_some(""),
    };
    match family.sort {
        FamilyKind::Counter => {
            let all = endpoint.counters.iter();
            all.filter_map(|(name, value)| Some((member(name)?, Value::Count(*value)))).collect()
        }
        FamilyKind::Gauge => {
            let all = endpoint.gauges.iter();
            all.filter_map(|(name, value)| Some((member(name)?, Value::Stand(*value)))).collect()
        }
        FamilyKind::Histogram => {
            let all = endpoint.histograms.iter();
            all.filter_map(|(name, value)| Some((member(name)?, Value::Seen(value)))).collect()
        }
    }
}

/// Bounds of a histogram's buckets, always the same ones: what Prometheus compares over time.
fn bounds(name: &str) -> Vec<u64> {
    match name {
        // Where buckets of 64 bytes and of 1 KiB end, too.
        "message_bytes" => (6..=17).map(|power| 1 << power).collect(),
        // From a microsecond to 17 s: where fine buckets end.
        _ => (10..=34).map(|power| (1 << power) - 1).collect(),
    }
}

fn counter(metric: &mut MetricEncoder<'_>, labels: &Labels, value: f64) -> fmt::Result {
    // Whole numbers as such: a float loses the lowest digits of large ones only from 2^53 on.
    if value.fract() == 0.0 && value < 9e15 {
        metric.encode_family(labels)?.encode_counter::<NoLabelSet, u64, u64>(&(value as u64), None)
    } else {
        metric.encode_family(labels)?.encode_counter::<NoLabelSet, f64, u64>(&value, None)
    }
}

fn histogram(
    metric: &mut MetricEncoder<'_>,
    labels: &Labels,
    found: &Buckets,
    bounds: impl Iterator<Item = u64>,
    scale: f64,
) -> fmt::Result {
    let mut rest = &found.buckets[..];
    let mut buckets = Vec::new();
    for bound in bounds {
        let within = rest.iter().take_while(|(upto, _)| upto.is_some_and(|upto| upto <= bound));
        let within = within.count();
        let (these, others) = rest.split_at(within);
        rest = others;
        buckets.push((bound as f64 / scale, these.iter().map(|(_, count)| count).sum()));
    }
    buckets.push((f64::INFINITY, rest.iter().map(|(_, count)| count).sum()));
    let sum = found.sum as f64 / scale;
    metric.encode_family(labels)?.encode_histogram::<NoLabelSet>(sum, found.count(), &buckets, None)
}
