//! Exemplars of durations name RPCs that the time trace contains.

use crate::{Tracing, pair, pair_in_memory, serve_while};
use apus::prometheus::text;
use apus::snapshot::{EndpointSnapshot, Snapshot};
use apus::trace::{Event, Sampling, Trace};
use apus::{Endpoint, EndpointBuilder};
use std::time::{Duration, SystemTime};

const FAMILIES: [&str; 2] =
    ["rpc_client_call_duration_seconds_bucket", "rpc_server_call_duration_seconds_bucket"];

/// The text for Prometheus of one endpoint.
fn text_of(endpoint: &Endpoint) -> String {
    let counted = EndpointSnapshot::new(endpoint.local_addr(), &endpoint.metrics());
    text(vec![Snapshot { endpoints: vec![counted], ..Snapshot::default() }], false)
}

/// The exemplars of a family in a text: RPC, peer, duration, time.
fn exemplars(text: &str, family: &str) -> Vec<[String; 4]> {
    let exemplar = |line: &str| {
        let (_, exemplar) = line.strip_prefix(family)?.split_once(" # {rpc=\"")?;
        let (rpc, rest) = exemplar.split_once("\",peer=\"")?;
        let (peer, rest) = rest.split_once("\"} ")?;
        let (duration, time) = rest.split_once(' ')?;
        Some([rpc, peer, duration, time].map(str::to_owned))
    };
    text.lines().filter_map(exemplar).collect()
}

/// Whether a trace has this RPC of `endpoint`, found as `apus trace rpcs --id ... --peer ...` finds
/// it.
fn has(trace: &Trace, endpoint: &Endpoint, rpc: &str, peer: &str) -> bool {
    trace.records().filter_map(|(_, record)| record.rpc()).any(|found| {
        let ends = trace.head.peer(found.peer()).unwrap();
        found.id().to_string() == rpc
            && ends.endpoint == endpoint.local_addr()
            && ends.address.to_string() == peer
    })
}

#[test]
fn an_exemplar_names_an_rpc_of_the_trace_file() {
    let tracing = Tracing::all();
    let place = tempfile::tempdir().unwrap();
    let (client, server) = pair(&EndpointBuilder::default());
    let before = SystemTime::now();
    serve_while(&server, || {
        for _ in 0..3 {
            client.call(server.local_addr(), "hello").unwrap();
        }
    });
    let after = SystemTime::now();
    let file = place.path().join("both.tt");
    tracing.trace().save(&file).unwrap();
    let trace = Trace::load(&file).unwrap();
    let last = trace.all(Event::Call).map(|(_, record)| record.rpc().unwrap().id()).max().unwrap();
    for (endpoint, other, family) in
        [(&client, &server, FAMILIES[0]), (&server, &client, FAMILIES[1])]
    {
        let text = text_of(endpoint);
        let found = exemplars(&text, family);
        assert!(!found.is_empty(), "{text}");
        for [rpc, peer, duration, time] in &found {
            assert_eq!(*peer, other.local_addr().to_string());
            assert!(has(&trace, endpoint, rpc, peer), "{rpc} {peer}");
            assert!(duration.parse::<f64>().unwrap() >= 0.0);
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs_f64(time.parse().unwrap());
            // The clocks are read one after the other, and this machine may be busy in between.
            let tolerance = Duration::from_secs(60);
            assert!(before - tolerance <= time && time <= after + tolerance, "{time:?}");
        }
        let ids: Vec<u64> = found.iter().map(|exemplar| exemplar[0].parse().unwrap()).collect();
        assert!(ids.contains(&last), "the latest call is that of its bucket: {ids:?}");
    }
}

#[test]
fn without_a_trace_there_are_no_exemplars() {
    let _tracing = Tracing::with(Sampling::Off);
    let (client, server) = pair(&EndpointBuilder::default());
    serve_while(&server, || drop(client.call(server.local_addr(), "hello").unwrap()));
    for endpoint in [&client, &server] {
        assert!(!text_of(endpoint).contains(" # {"));
    }
}

#[test]
fn a_call_through_memory_is_an_exemplar_as_well() {
    let tracing = Tracing::all();
    let Some((client, server)) = pair_in_memory() else { return };
    // The first call through memory is timed.
    serve_while(&server, || {
        while client.metrics().engine.local_calls == 0 {
            client.call(server.local_addr(), "hello").unwrap();
        }
    });
    let trace = tracing.trace();
    let local = trace.all(Event::LocalReceived).filter_map(|(_, record)| record.rpc());
    let ids: Vec<String> = local.map(|rpc| rpc.id().to_string()).collect();
    let found = exemplars(&text_of(&client), FAMILIES[0]);
    let server = server.local_addr().to_string();
    let is_local = |[rpc, peer, ..]: &[String; 4]| ids.contains(rpc) && *peer == server;
    assert!(found.iter().any(is_local), "{found:?} {ids:?}");
    assert!(found.iter().all(|[rpc, peer, ..]| has(&trace, &client, rpc, peer)), "{found:?}");
}
