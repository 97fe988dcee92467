//! Encoding of families for Prometheus.
//!
//! A counter is named `apus_NAME_total`, with the label of the family and the endpoint's address.
//! Units are Prometheus's base units: nanoseconds become seconds. Durations of RPCs have
//! OpenTelemetry's names.

use super::exemplars::BucketExemplars;
use crate::snapshot::{
    ApplicationFamily, Buckets, EndpointSnapshot, Family, FamilyKind, MemberValue, Snapshot,
    families, members,
};
use apus_proto::COARSE_BOUNDS;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

const NANOS: f64 = 1e9;

/// Encodes all families of a set of snapshots.
#[derive(Debug)]
pub(super) struct FamilyCollector {
    pub(super) snapshots: Vec<Snapshot>,
    pub(super) by_process: bool,
}

type Labels = Vec<(&'static str, String)>;

impl Collector for FamilyCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for family in families() {
            if is_otel(&family) {
                self.encode_otel(&family, &mut encoder)?;
            } else {
                self.encode_family(&family, &mut encoder)?;
            }
        }
        self.encode_application(&mut encoder)?;
        let help = "Processor time that the process has used, all threads together.";
        let seconds = Unit::Seconds;
        let mut cpu = encoder.encode_descriptor(
            "apus_process_cpu",
            help,
            Some(&seconds),
            MetricType::Counter,
        )?;
        for snapshot in self.snapshots.iter().filter(|snapshot| !snapshot.unresponsive) {
            let labels = self.labels(snapshot, &[]);
            counter(&mut cpu, &labels, snapshot.cpu_nanos as f64 / NANOS)?;
        }
        if self.by_process { self.encode_up(&mut encoder) } else { Ok(()) }
    }
}

impl FamilyCollector {
    /// Returns the labels of a value: those given, and the process if `by_process` is set.
    fn labels(&self, snapshot: &Snapshot, labels: &[(&'static str, String)]) -> Labels {
        let mut labels = labels.to_vec();
        if self.by_process {
            labels.push(("pid", snapshot.pid.to_string()));
            labels.push(("program", snapshot.program.clone()));
        }
        labels
    }

    /// Encodes which processes have responded.
    fn encode_up(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "1 if the process has responded to the request for its counters, 0 if not.";
        let mut up = encoder.encode_descriptor("apus_up", help, None, MetricType::Gauge)?;
        for snapshot in &self.snapshots {
            let value = u64::from(!snapshot.unresponsive);
            up.encode_family(&self.labels(snapshot, &[]))?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn encode_family(&self, family: &Family, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let PrometheusName { name, unit, scale } = prometheus_name(family);
        let kind = match family.kind {
            FamilyKind::Counter => MetricType::Counter,
            FamilyKind::Gauge => MetricType::Gauge,
            FamilyKind::Histogram => MetricType::Histogram,
        };
        let mut metric = encoder.encode_descriptor(&name, &family.help, unit.as_ref(), kind)?;
        for snapshot in &self.snapshots {
            for endpoint in &snapshot.endpoints {
                let address = ("endpoint", endpoint.address.to_string());
                let shard = endpoint.shard.map(|shard| ("shard", shard.to_string()));
                for (member, value) in members(endpoint, family) {
                    let own = family.label.map(|label| (label, member.to_owned()));
                    let place = [address.clone()].into_iter().chain(shard.clone());
                    let labels: Labels = place.chain(own).collect();
                    let labels = self.labels(snapshot, &labels);
                    match value {
                        MemberValue::Counter(count) => {
                            counter(&mut metric, &labels, count as f64 / scale)?;
                        }
                        MemberValue::Gauge(value) => {
                            metric.encode_family(&labels)?.encode_gauge(&value)?;
                        }
                        MemberValue::Histogram(buckets) => {
                            let bounds = bounds(&family.name);
                            histogram(&mut metric, &labels, buckets, bounds.into_iter(), scale)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Encodes a family of OpenTelemetry.
    fn encode_otel(&self, family: &Family, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let seconds = Unit::Seconds;
        let name = &family.name;
        let mut metric =
            encoder.encode_descriptor(name, &family.help, Some(&seconds), MetricType::Histogram)?;
        for (labels, buckets) in self.otel_histograms(family) {
            histogram(&mut metric, &labels, &buckets, COARSE_BOUNDS.into_iter(), NANOS)?;
        }
        Ok(())
    }

    /// Returns the histograms of a family of OpenTelemetry with their labels. Its attributes
    /// identify a service but no endpoint, so all clients of a process are added up.
    fn otel_histograms(&self, family: &Family) -> Vec<(Labels, Buckets)> {
        let is_server = family.name.contains("server");
        let mut histograms = Vec::new();
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
                    let MemberValue::Histogram(buckets) = value else { continue };
                    let failed = (member != "ok").then(|| ("error_type", member.to_owned()));
                    let labels: Labels = labels.iter().cloned().chain(failed).collect();
                    histograms.push((self.labels(snapshot, &labels), buckets.clone()));
                }
            }
        }
        histograms
    }

    /// Returns the exemplars of the families of OpenTelemetry, in the order of their buckets'
    /// encoding.
    pub(super) fn exemplars(&self) -> BucketExemplars {
        let mut all = BucketExemplars::default();
        for family in families().iter().filter(|family| is_otel(family)) {
            all.add_family(format!("{}_seconds", family.name));
            for (_, buckets) in self.otel_histograms(family) {
                all.add_histogram(&buckets);
            }
        }
        all
    }
}

/// Returns whether a family has a name of OpenTelemetry. `rpc_timeouts` and `rpc_restarts` have the
/// same prefix but are apus's own counters.
fn is_otel(family: &Family) -> bool {
    family.name.starts_with("rpc_") && family.kind == FamilyKind::Histogram
}

impl FamilyCollector {
    /// Encodes the families that applications have published. Invalid and duplicate names are left
    /// out: a process of another user must not make the text unreadable.
    fn encode_application(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut taken: BTreeSet<String> =
            families().into_iter().map(|family| family.name).collect();
        taken.insert("up".to_owned());
        let published = self.snapshots.iter().flat_map(|snapshot| &snapshot.application);
        let mut named: BTreeMap<&str, &ApplicationFamily> = BTreeMap::new();
        for family in published {
            let names = [Some(&family.name), family.label.as_ref()];
            if names.into_iter().flatten().all(|name| is_name(name))
                && !taken.contains(&family.name)
            {
                named.entry(&family.name).or_insert(family);
            }
        }
        for (name, first) in named {
            let kind = match first.kind {
                FamilyKind::Counter => MetricType::Counter,
                FamilyKind::Gauge => MetricType::Gauge,
                FamilyKind::Histogram => continue,
            };
            let (stem, unit) = match name.strip_suffix("_bytes") {
                Some(stem) => (stem, Some(&Unit::Bytes)),
                None => (name, None),
            };
            let name = format!("apus_{stem}");
            let mut metric = encoder.encode_descriptor(&name, &first.help, unit, kind)?;
            for snapshot in &self.snapshots {
                let same = |family: &&ApplicationFamily| {
                    (&family.name, family.kind, &family.label)
                        == (&first.name, first.kind, &first.label)
                };
                let Some(family) = snapshot.application.iter().find(same) else { continue };
                for (member, value) in &family.values {
                    let own = first.label.iter().map(|label| (label.clone(), member.clone()));
                    let process = self.labels(snapshot, &[]);
                    let process =
                        process.into_iter().map(|(label, value)| (label.to_owned(), value));
                    let labels: Vec<(String, String)> = own.chain(process).collect();
                    let mut metric = metric.encode_family(&labels)?;
                    match first.kind {
                        FamilyKind::Counter => {
                            metric.encode_counter::<NoLabelSet, u64, u64>(value, None)?;
                        }
                        _ => metric.encode_gauge(value)?,
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether a text may be the name of a metric or of a label.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

/// Name and unit of a family in Prometheus.
struct PrometheusName {
    name: String,
    unit: Option<Unit>,
    /// Divisor from the family's unit to Prometheus's.
    scale: f64,
}

fn prometheus_name(family: &Family) -> PrometheusName {
    let (stem, unit, scale) = match family.name.strip_suffix("_nanos") {
        Some(stem) => (stem, Some(Unit::Seconds), NANOS),
        None => match family.name.strip_suffix("_bytes") {
            Some(stem) => (stem, Some(Unit::Bytes), 1.0),
            None => (&family.name[..], None, 1.0),
        },
    };
    let stem = match stem {
        // The unit alone does not tell that these are durations and sizes.
        "call" | "serve" => format!("{stem}_duration"),
        "message" => "message_size".to_owned(),
        stem => stem.to_owned(),
    };
    PrometheusName { name: format!("apus_{stem}"), unit, scale }
}

/// Returns the bounds of a histogram's buckets. They are fixed, since Prometheus compares buckets
/// over time.
fn bounds(name: &str) -> Vec<u64> {
    match name {
        // Multiples of 64 bytes and of 1 KiB, which are bounds of source buckets.
        "message_bytes" => (6..=17).map(|power| 1 << power).collect(),
        // From 1 µs to 17 s, at bounds of fine source buckets.
        _ => (10..=34).map(|power| (1 << power) - 1).collect(),
    }
}

fn counter(metric: &mut MetricEncoder<'_>, labels: &Labels, value: f64) -> fmt::Result {
    // Integers are written as such up to 2^53, from where on a float is not exact.
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
