//! Counters of endpoints: their values, their names, and the page that describes them.

use crate::fixtures::patient;
use crate::{bytes, echo_pair, pair};
use apus::snapshot::{EndpointSnapshot as Counted, FamilyKind, families};
use apus::{CallOptions, Endpoint};
use std::time::Duration;

fn counted(endpoint: &Endpoint) -> Counted {
    Counted::new(endpoint.local_addr(), &endpoint.metrics())
}

#[test]
fn sizes_and_durations_of_calls_are_counted() {
    let (client, address, server) = echo_pair(&patient());
    for length in [1, 64, 65, 5_000, 200_000] {
        client.call(address, bytes(1, length)).unwrap();
    }
    assert!(client.drain(Duration::from_secs(60)));
    let (mine, theirs) = (counted(&client), counted(&server.endpoint));
    let lengths = [(Some(64), 2), (Some(128), 1), (Some(5_120), 1), (None, 1)];
    assert_eq!(mine.histograms["message_bytes"].buckets, lengths);
    assert_eq!(mine.histograms["message_bytes"].sum, 205_130);
    assert_eq!(mine.histograms["message_bytes"], theirs.histograms["message_bytes"], "an echo");
    for (counted, name) in [(&mine, "call_nanos"), (&theirs, "serve_nanos")] {
        let durations = &counted.histograms[name];
        assert_eq!(durations.count(), 5, "{name}");
        assert!(durations.sum > 0 && durations.quantile(0.5).is_some(), "{durations:?}");
    }
    assert_eq!(mine.histograms["rpc_client_call_duration.ok"].count(), 5);
    assert_eq!(theirs.histograms["rpc_server_call_duration.ok"].count(), 5);
    assert!(mine.histograms["call_nanos"].sum >= theirs.histograms["serve_nanos"].sum);
}

#[test]
fn calls_that_fail_are_counted_by_reason() {
    let (client, server) = pair(&patient());
    // The server's application does not receive the request.
    let options = CallOptions::new().timeout(Duration::from_millis(1));
    client.call_with(server.local_addr(), "x", options).unwrap_err();
    let counted = counted(&client);
    assert_eq!(counted.histograms["rpc_client_call_duration.deadline_exceeded"].count(), 1);
    assert_eq!(counted.histograms["rpc_client_call_duration.ok"].count(), 0);
    server.shutdown();
}

#[test]
fn messages_that_wait_for_grants_are_integrated_over_time() {
    let (client, address, server) = echo_pair(&patient());
    client.call(address, bytes(3, 3_000_000)).unwrap();
    let counted = counted(&server.endpoint);
    assert!(counted.counter("granted_bytes") > 0, "it was too long to be unscheduled");
    assert!(counted.counter("grant_checks") > 0);
    assert!(counted.counter("grantable_integral_nanos") > 0);
    assert_eq!(counted.gauge("grantable"), 0);
}

#[test]
fn processor_time_is_sampled() {
    const PARTS: [&str; 4] = ["receive_nanos", "protocol_nanos", "send_nanos", "poll_nanos"];
    let (client, address, server) = echo_pair(&patient());
    let is_missing = |endpoint: &Endpoint| {
        let counted = counted(endpoint);
        PARTS.iter().any(|part| counted.counter(part) == 0)
    };
    // One pass in 251 is timed, possibly one without arrivals: the bound is far more calls than
    // that takes.
    let mut calls = 0;
    while is_missing(&client) || is_missing(&server.endpoint) {
        assert!(calls < 100_000, "{:?}", [counted(&client), counted(&server.endpoint)]);
        (0..100).for_each(|_| drop(client.call(address, "x").unwrap()));
        calls += 100;
    }
}

#[test]
fn waiting_for_the_lock_is_counted() {
    let (client, address, _server) = echo_pair(&patient());
    let misses = || counted(&client).counter("lock_misses");
    // Two threads that contend for the lock until the first wait is counted.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while misses() == 0 {
                    client.call(address, "x").unwrap();
                }
            });
        }
    });
    assert!(counted(&client).counter("lock_miss_nanos") > 0);
}

#[test]
fn queue_lengths_are_reported() {
    let (client, server) = pair(&patient());
    let call = client.send(server.local_addr(), "x", 0).unwrap();
    assert_eq!(client.metrics().queues.calls, 1);
    assert!(client.cancel(call));
    assert_eq!(client.metrics().queues.calls, 0);
}

/// The text of `docs/metrics.md`.
fn page() -> String {
    let mut page = String::from(include_str!("metrics_head.md"));
    let mut group = "";
    for family in families() {
        if family.group != group {
            group = family.group;
            page +=
                &format!("\n## {}\n\n| name | kind | meaning |\n|---|---|---|\n", family.title());
        }
        let label =
            family.label.map_or_else(String::new, |label| format!(".{}", label.to_uppercase()));
        let kind = match family.kind {
            FamilyKind::Counter => "counter",
            FamilyKind::Gauge => "gauge",
            FamilyKind::Histogram => "histogram",
        };
        page += &format!("| `{}{label}` | {kind} | {} |\n", family.name, family.help);
    }
    page +=
        "\n## Canaries\n\nCounters that should not move; `apus metrics` says so if they do.\n\n";
    page += "| name | what it means |\n|---|---|\n";
    for canary in apus::snapshot::CANARIES {
        page += &format!("| `{}` | {} |\n", canary.name, canary.meaning);
    }
    page
}

/// `APUS_WRITE_DOCS=1 cargo test -p apus --test endpoint metrics` writes the page.
#[test]
fn the_page_about_metrics_says_what_the_code_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    if std::env::var_os("APUS_WRITE_DOCS").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    let Ok(found) = std::fs::read_to_string(path) else {
        eprintln!("SKIPPED: no docs/metrics.md; this is not a checkout of the workspace");
        return;
    };
    assert!(found == page(), "docs/metrics.md is not what the code says; see this test's comment");
}

/// An entry of the recorder: name and labels, unit, help, value.
type Recorded = (
    metrics_util::CompositeKey,
    Option<metrics::Unit>,
    Option<metrics::SharedString>,
    metrics_util::debugging::DebugValue,
);

#[test]
fn a_recorder_of_the_facade_gets_differences() {
    use metrics_util::debugging::DebuggingRecorder;

    let (client, address, _server) = echo_pair(&patient());
    let recorder = DebuggingRecorder::new();
    let recorded = recorder.snapshotter();
    let mut publisher = apus::metrics_bridge::Publisher::default();
    let mut publish = || {
        let publish = || publisher.publish(client.local_addr(), &client.metrics());
        metrics::with_local_recorder(&recorder, publish);
        recorded.snapshot().into_vec()
    };
    client.call(address, bytes(1, 100)).unwrap();
    client.call(address, bytes(1, 100)).unwrap();
    let first = publish();
    let find = |all: &[Recorded], wanted: &str| {
        let (key, unit, help, value) = all
            .iter()
            .find(|(key, ..)| key.key().name() == wanted)
            .unwrap_or_else(|| panic!("no {wanted}"));
        let labels = key.key().labels().map(|l| (l.key().to_owned(), l.value().to_owned()));
        (labels.collect::<Vec<_>>(), *unit, help.clone(), format!("{value:?}"))
    };
    let (labels, _, help, value) = find(&first, "apus.client_responses_done");
    assert_eq!(labels, [("endpoint".to_owned(), client.local_addr().to_string())]);
    assert_eq!(
        (help.unwrap().as_ref(), &value[..]),
        ("Calls that ended with a response.", "Counter(2)")
    );
    let (labels, unit, _, value) = find(&first, "rpc.client.call.duration");
    assert_eq!(labels, [("rpc.system.name".to_owned(), "apus".to_owned())]);
    assert_eq!(unit, Some(metrics::Unit::Seconds));
    let durations = value.trim_start_matches("Histogram([").trim_end_matches("])");
    assert_eq!(durations.split(", ").count(), 2, "one for each call: {value}");
    assert!(find(&first, "apus.peers").3.starts_with("Gauge("));
    client.call(address, bytes(1, 100)).unwrap();
    // The recorder is reset by each snapshot; without differences it would have 3.
    assert_eq!(find(&publish(), "apus.client_responses_done").3, "Counter(1)");
}
