//! Names and values of an endpoint's counters, gauges and histograms.

use super::{Buckets, Exemplar};
use crate::Metrics;
use apus_proto::{COARSE_BOUNDS, CoarseHistogram, DropReason, Exemplars, Kind};

/// Returns all counters.
pub(super) fn counters(metrics: &Metrics) -> Vec<(String, u64)> {
    let Metrics { protocol, engine, driver, .. } = metrics;
    let mut all = Vec::new();
    let mut add = |name: &str, value| all.push((name.to_owned(), value));
    protocol.progress.iter().for_each(|(name, value)| add(name, value));
    protocol.recovery.iter().for_each(|(name, value)| add(name, value));
    protocol.scheduling.iter().for_each(|(name, value)| add(name, value));
    protocol.admission.iter().for_each(|(name, value)| add(name, value));
    engine.iter().for_each(|(name, value)| add(name, value));
    for kind in Kind::ALL {
        let name = kind.name().to_lowercase();
        add(&format!("packets_sent.{name}"), protocol.sent(kind));
        add(&format!("packets_received.{name}"), protocol.received(kind));
    }
    for (priority, packets) in protocol.priority_packets.iter().enumerate() {
        add(&format!("priority_packets.{priority}"), *packets);
    }
    for (priority, bytes) in protocol.priority_bytes.iter().enumerate() {
        add(&format!("priority_bytes.{priority}"), *bytes);
    }
    for reason in DropReason::ALL {
        add(&format!("packets_dropped.{}", reason.name()), protocol.dropped(*reason));
    }
    driver.iter().for_each(|(name, value)| add(&format!("driver_{name}"), *value));
    all
}

/// Returns all gauges.
pub(super) fn gauges(metrics: &Metrics) -> Vec<(String, u64)> {
    let all = metrics.protocol.live.iter().chain(metrics.queues.iter());
    all.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns all histograms.
pub(super) fn histograms(metrics: &Metrics) -> Vec<(String, Buckets)> {
    let calls = &metrics.protocol.calls;
    let mut answered = calls.answered;
    answered.add(&metrics.local_calls);
    let fine = |durations: &apus_proto::DurationHistogram| {
        Buckets::new(durations.coarse().nanos(), durations.fine())
    };
    let ok = |durations: &apus_proto::DurationHistogram, exemplars: &Exemplars| {
        let exemplar = |found| Exemplar::new(found, metrics.read_at);
        let exemplars = exemplars.iter().map(exemplar).collect();
        Buckets { exemplars, ..coarse(durations.coarse()) }
    };
    let mut answered_exemplars = calls.answered_exemplars;
    answered_exemplars.add(&metrics.local_exemplars);
    let sizes = Buckets::new(metrics.messages.bytes(), metrics.messages.buckets());
    let mut all = vec![
        ("message_bytes".to_owned(), sizes),
        ("call_nanos".to_owned(), fine(&answered)),
        ("serve_nanos".to_owned(), fine(&calls.served)),
        ("rpc_client_call_duration.ok".to_owned(), ok(&answered, &answered_exemplars)),
        ("rpc_server_call_duration.ok".to_owned(), ok(&calls.served, &calls.served_exemplars)),
    ];
    for (reason, durations) in calls.failures().filter(|(_, durations)| durations.count() > 0) {
        all.push((format!("rpc_client_call_duration.{reason}"), coarse(durations)));
    }
    all
}

fn coarse(durations: &CoarseHistogram) -> Buckets {
    let bounds = COARSE_BOUNDS.into_iter().chain([u64::MAX]);
    let all = bounds.zip(durations.counts().iter().copied());
    Buckets::new(durations.nanos(), all.filter(|(_, count)| *count > 0))
}
