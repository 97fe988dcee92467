//! Exemplars on their way from counters through snapshots to the text for Prometheus.

use apus_observe::prometheus::text;
use apus_observe::snapshot::{EndpointSnapshot, Snapshot};
use apus_observe::{Metrics, ReadTime};
use apus_proto::{Exemplar, Instant};
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

/// The time of day at the protocol's time 0.
const ORIGIN_SECONDS: u64 = 1_700_000_000;

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// The counters of a client that has made calls: their ids, durations in milliseconds, and when
/// they ended in milliseconds.
fn client(calls: &[(u64, u64, u64)]) -> Metrics {
    let mut metrics = Metrics::default();
    let protocol = Instant::from_nanos(9_000_000_000);
    let system = SystemTime::UNIX_EPOCH + Duration::from_secs(ORIGIN_SECONDS + 9);
    metrics.read_at = Some(ReadTime { protocol, system });
    for (id, millis, end) in calls {
        let nanos = millis * 1_000_000;
        let at = Instant::from_nanos(end * 1_000_000);
        metrics.protocol.calls.answered.record(nanos, 1);
        let exemplar = Exemplar { peer: address(4_000), id: *id, nanos, at };
        metrics.protocol.calls.answered_exemplars.remember(exemplar);
    }
    metrics
}

fn snapshot(endpoints: Vec<EndpointSnapshot>) -> Snapshot {
    Snapshot { endpoints, ..Snapshot::default() }
}

/// Lines with an exemplar: the part before it, and the exemplar.
fn exemplars(text: &str) -> Vec<(&str, &str)> {
    text.lines().filter_map(|line| line.split_once(" # ")).collect()
}

#[test]
fn the_bucket_of_a_traced_call_names_it() {
    let client = EndpointSnapshot::new(address(1), &client(&[(2, 3, 2_000), (4, 20_000, 3_042)]));
    let text = text(vec![snapshot(vec![client])], false);
    let bucket = |bound: &str, count| {
        let labels = format!("le=\"{bound}\",rpc_system_name=\"apus\"");
        format!("rpc_client_call_duration_seconds_bucket{{{labels}}} {count}")
    };
    let found = exemplars(&text);
    assert_eq!(
        found,
        [
            (
                &bucket("0.005", 1)[..],
                r#"{rpc="2",peer="127.0.0.1:4000"} 0.003000000 1700000002.000"#
            ),
            (
                &bucket("+Inf", 2)[..],
                r#"{rpc="4",peer="127.0.0.1:4000"} 20.000000000 1700000003.042"#
            ),
        ]
    );
    assert!(text.ends_with("\n# EOF\n"));
}

#[test]
fn of_several_clients_of_a_process_the_latest_call_is_named() {
    let one = EndpointSnapshot::new(address(1), &client(&[(2, 1, 5_000), (4, 7, 1_000)]));
    let other = EndpointSnapshot::new(address(2), &client(&[(6, 2, 4_000), (8, 8, 4_000)]));
    let text = text(vec![snapshot(vec![one.clone(), other.clone()])], false);
    let ids = exemplars(&text).into_iter().map(|(_, exemplar)| exemplar.split('"').nth(1).unwrap());
    assert_eq!(ids.collect::<Vec<_>>(), ["2", "8"]);
    // Processes keep their own.
    let text =
        apus_observe::prometheus::text(vec![snapshot(vec![one]), snapshot(vec![other])], true);
    assert_eq!(exemplars(&text).len(), 4);
}

#[test]
fn shards_are_added_before_they_are_named() {
    let mut sum = client(&[(2, 1, 5_000)]);
    sum.add(&client(&[(4, 1, 6_000)]));
    let sum = EndpointSnapshot::new(address(1), &sum);
    let [exemplar] = sum.histograms["rpc_client_call_duration.ok"].exemplars[..] else { panic!() };
    assert_eq!((exemplar.rpc, exemplar.unix_millis), (4, Some(1_000 * ORIGIN_SECONDS + 6_000)));
    assert!(sum.histograms["call_nanos"].exemplars.is_empty(), "its buckets are others");
}

#[test]
fn served_requests_are_named_and_calls_without_a_trace_are_not() {
    let mut metrics = client(&[]);
    metrics.protocol.calls.answered.record(7, 1);
    metrics.protocol.calls.served.record(7, 1);
    let exemplar = Exemplar { peer: address(5), id: 2, nanos: 7, at: Instant::ZERO };
    metrics.protocol.calls.served_exemplars.remember(exemplar);
    metrics.read_at = None;
    let text = text(vec![snapshot(vec![EndpointSnapshot::new(address(1), &metrics)])], true);
    let [(bucket, exemplar)] = exemplars(&text)[..] else { panic!("{text}") };
    assert!(
        bucket.starts_with("rpc_server_call_duration_seconds_bucket{le=\"0.005\","),
        "{bucket}"
    );
    assert_eq!(exemplar, r#"{rpc="2",peer="127.0.0.1:5"} 0.000000007"#, "no time of day");
}

#[test]
fn snapshots_keep_exemplars_and_may_lack_them() {
    let client = EndpointSnapshot::new(address(1), &client(&[(2, 3, 2_000)]));
    let stored = serde_json::to_string(&snapshot(vec![client.clone()])).unwrap();
    let read: Snapshot = serde_json::from_str(&stored).unwrap();
    assert_eq!(read.endpoints, [client]);
    // From a version that has none.
    let earlier = r#"{"endpoints":[{"address":"127.0.0.1:1",
        "histograms":{"rpc_client_call_duration.ok":{"sum":5,"buckets":[[5000000,1]]}}}]}"#;
    let earlier: Snapshot = serde_json::from_str(earlier).unwrap();
    let change = read.since(&earlier);
    let durations = &change.endpoints[0].histograms["rpc_client_call_duration.ok"];
    assert_eq!(durations.exemplars.len(), 1);
    assert!(!serde_json::to_string(&earlier).unwrap().contains("exemplars"));
    assert_eq!(exemplars(&text(vec![earlier], false)), []);
}
