//! The catalogue of counters: families with their group, kind and meaning.

use crate::{EngineMetrics, Queues, SEALING};
use apus_proto::{Admission, Live, Metadata, Progress, Recovery, Scheduling};

/// The kind of values in a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum FamilyKind {
    /// Counts that only increase.
    Counter,
    /// Current values.
    Gauge,
    /// Histograms.
    Histogram,
}

/// A counter, gauge or histogram, or several that differ in one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Name of its group, such as `recovery`.
    pub group: &'static str,
    /// Name of the family: the part of a counter's name before the dot.
    pub name: String,
    /// The label that distinguishes its members, such as `type`: the part of a counter's name after
    /// the dot. `None` if the family has one member.
    pub label: Option<&'static str>,
    /// Kind of its values.
    pub kind: FamilyKind,
    /// Meaning, in one line.
    pub help: String,
}

impl Family {
    /// Returns the title of its group.
    #[must_use]
    pub fn title(&self) -> &'static str {
        GROUPS.iter().find(|(name, _)| *name == self.group).map_or(self.group, |(_, title)| title)
    }
}

/// Names and titles of the groups, in the order of presentation.
const GROUPS: &[(&str, &str)] = &[
    ("progress", "Progress of RPCs"),
    ("reception", "Reception and wake-ups"),
    ("packets", "Packets by type and priority"),
    ("recovery", "Loss, reordering and recovery"),
    ("drops", "Dropped packets"),
    ("scheduling", "Grants and pacing"),
    ("admission", "At most once, and admission"),
    ("driver", "The UDP driver and its system calls"),
    ("sealing", "Sealed packets and handshakes"),
    ("live", "Current state"),
    ("histograms", "Sizes and durations"),
];

/// Returns all families, group by group.
#[must_use]
pub fn families() -> Vec<Family> {
    let mut all = Vec::new();
    let mut group = |group, kind, prefix: &str, meanings: &[Metadata]| {
        let family = |meaning: &Metadata| Family {
            group,
            name: format!("{prefix}{}", meaning.name),
            label: None,
            kind,
            help: meaning.text(),
        };
        all.extend(meanings.iter().map(family));
    };
    group("progress", FamilyKind::Counter, "", Progress::METADATA);
    group("reception", FamilyKind::Counter, "", EngineMetrics::METADATA);
    group("recovery", FamilyKind::Counter, "", Recovery::METADATA);
    group("scheduling", FamilyKind::Counter, "", Scheduling::METADATA);
    group("admission", FamilyKind::Counter, "", Admission::METADATA);
    group("live", FamilyKind::Gauge, "", Live::METADATA);
    group("live", FamilyKind::Gauge, "", Queues::METADATA);
    let driver: Vec<_> = apus_socket::SocketCounters::metadata()
        .map(|(name, help)| Metadata { name, help })
        .collect();
    group("driver", FamilyKind::Counter, "driver_", &driver);
    group("sealing", FamilyKind::Counter, "driver_", SEALING);
    all.extend(labelled());
    let place = |group: &str| GROUPS.iter().position(|(name, _)| *name == group);
    all.sort_by_key(|family| place(family.group));
    all
}

/// Returns families with several members, and histograms.
fn labelled() -> impl Iterator<Item = Family> {
    use FamilyKind::{Counter, Histogram};
    let families = [
        ("packets", "packets_sent", Some("type"), Counter, "Packets sent."),
        (
            "packets",
            "packets_received",
            Some("type"),
            Counter,
            "Packets received that parsed and were addressed to this endpoint.",
        ),
        (
            "packets",
            "priority_packets",
            Some("priority"),
            Counter,
            "DATA packets sent at each priority.",
        ),
        (
            "packets",
            "priority_bytes",
            Some("priority"),
            Counter,
            "Bytes of DATA packets sent at each priority, headers included.",
        ),
        (
            "drops",
            "packets_dropped",
            Some("reason"),
            Counter,
            "Packets that were dropped, entirely or in part.",
        ),
        (
            "histograms",
            "message_bytes",
            None,
            Histogram,
            "Lengths of the messages that the application received, in the buckets of the kernel module (`msg_bytes_N`).",
        ),
        (
            "histograms",
            "call_nanos",
            None,
            Histogram,
            "Durations of calls that ended with a response, from the call until the response was complete. Of calls \
             through shared memory one in 64 is timed, and counts for all.",
        ),
        (
            "histograms",
            "serve_nanos",
            None,
            Histogram,
            "Durations of requests that were served over the network, from the first packet to the application's \
             reply.",
        ),
        (
            "histograms",
            "rpc_client_call_duration",
            Some("error_type"),
            Histogram,
            "Durations of calls in the buckets that OpenTelemetry recommends for `rpc.client.call.duration`; `ok` for \
             those that ended with a response.",
        ),
        (
            "histograms",
            "rpc_server_call_duration",
            Some("error_type"),
            Histogram,
            "Durations of served requests in the buckets that OpenTelemetry recommends for `rpc.server.call.duration`.",
        ),
    ];
    families.into_iter().map(|(group, name, label, kind, help)| Family {
        group,
        name: name.to_owned(),
        label,
        kind,
        help: help.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metrics;
    use crate::snapshot::{CANARIES, EndpointSnapshot};
    use std::collections::{BTreeMap, BTreeSet};

    fn everything() -> EndpointSnapshot {
        let names = apus_socket::SocketCounters::metadata().map(|(name, _)| name);
        let names = names.chain(SEALING.iter().map(|meaning| meaning.name));
        let names = names.map(|name| (name, 0)).collect();
        let mut metrics = Metrics { driver: names, ..Metrics::default() };
        metrics.messages.record(1);
        metrics.protocol.calls.answered.record(1, 1);
        metrics.protocol.calls.served.record(1, 1);
        EndpointSnapshot::new("127.0.0.1:1".parse().unwrap(), &metrics)
    }

    #[test]
    fn every_counter_has_a_family_and_every_family_has_counters() {
        let all = families();
        let known: BTreeMap<&str, &Family> = all.iter().map(|f| (f.name.as_str(), f)).collect();
        assert_eq!(known.len(), all.len(), "names differ");
        let endpoint = everything();
        let counted = endpoint.counters.keys().map(|name| (name, FamilyKind::Counter));
        let gauges = endpoint.gauges.keys().map(|name| (name, FamilyKind::Gauge));
        let histograms = endpoint.histograms.keys().map(|name| (name, FamilyKind::Histogram));
        let mut seen = BTreeSet::new();
        for (name, kind) in counted.chain(gauges).chain(histograms) {
            let (family, member) =
                name.split_once('.').map_or((&name[..], None), |(f, m)| (f, Some(m)));
            let known = known.get(family).unwrap_or_else(|| panic!("{name} has no family"));
            assert_eq!((known.kind, known.label.is_some()), (kind, member.is_some()), "{name}");
            assert!(!known.help.is_empty() && !known.help.contains("]("), "{name}: {}", known.help);
            seen.insert(family.to_owned());
        }
        let missing: Vec<_> = known.keys().filter(|name| !seen.contains(**name)).collect();
        assert!(missing.is_empty(), "nothing counts {missing:?}");
        assert!(all.iter().all(|family| GROUPS.iter().any(|(name, _)| *name == family.group)));
    }

    #[test]
    fn canaries_are_counters() {
        let endpoint = everything();
        for canary in CANARIES {
            assert!(endpoint.counters.contains_key(canary.name), "{}", canary.name);
        }
    }
}
