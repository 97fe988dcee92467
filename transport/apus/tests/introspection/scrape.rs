//! The exporter for Prometheus: its text, its histograms, its HTTP responses.

use apus::prometheus::{Exporter, text};
use apus::snapshot::{
    ApplicationFamily, EndpointSnapshot as Counted, FamilyKind, Snapshot, families,
};
use apus::{Endpoint, EndpointBuilder};
use prometheus_parse::{Sample, Scrape, Value};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Sends a request and returns head and body of the response.
fn get(address: SocketAddr, method: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn parsed(text: &str) -> Vec<Sample> {
    Scrape::parse(text.lines().map(|line| Ok(line.to_owned()))).unwrap().samples
}

/// Returns the value of the sample with this name and these labels.
fn value(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> f64 {
    let fits = |sample: &&Sample| {
        let same = labels.iter().all(|(label, value)| sample.labels.get(label) == Some(value));
        sample.metric == name && same
    };
    let found = samples.iter().find(fits).unwrap_or_else(|| panic!("no {name} {labels:?}"));
    match &found.value {
        Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value) => *value,
        other => panic!("{name}: {other:?}"),
    }
}

/// Returns a server and a client after `count` calls over the network and one call that failed.
fn after_calls(count: usize) -> (Endpoint, Endpoint) {
    let over_the_network = || EndpointBuilder::default().local(false);
    let server = over_the_network().bind("127.0.0.1:0").unwrap();
    let client = over_the_network().client().unwrap();
    for cookie in 0..count {
        client.send(server.local_addr(), vec![7; 100], cookie as u64).unwrap();
        server.recv_request().unwrap().reply(vec![8; 2_000]).unwrap();
        client.recv_completion().unwrap().result.unwrap();
    }
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    client.call(closed, "x").unwrap_err();
    (server, client)
}

fn snapshot(endpoints: [&Endpoint; 2]) -> Snapshot {
    let counted = |one: &Endpoint| Counted::new(one.local_addr(), &one.metrics());
    let endpoints = endpoints.map(counted).to_vec();
    Snapshot {
        pid: 7,
        program: "a \"b\"".to_owned(),
        cpu_nanos: 1_500_000_000,
        endpoints,
        ..Default::default()
    }
}

/// Counters of applications appear once for each process, and names that are none do no harm.
#[test]
fn the_text_has_what_applications_publish() {
    let family = |name: &str, kind, values: [(&str, u64); 2]| {
        ApplicationFamily::labelled(name, "kind", kind, "A test.", values)
    };
    let of = |pid, value| Snapshot {
        pid,
        application: vec![
            family("fs_test", FamilyKind::Counter, [("a\"\n", value), ("b", 1)]),
            ApplicationFamily::single("fs_log_bytes", FamilyKind::Gauge, "A test.", value),
            family("peers", FamilyKind::Counter, [("taken", 9), ("b", 1)]),
            family("no name\n# EOF", FamilyKind::Counter, [("a", 9), ("b", 1)]),
        ],
        ..Default::default()
    };
    let text = text(vec![of(7, 5), of(8, 6)], true);
    let samples = parsed(&text);
    assert_eq!(value(&samples, "apus_fs_test_total", &[("kind", "b"), ("pid", "8")]), 1.0);
    assert_eq!(value(&samples, "apus_fs_log_bytes", &[("pid", "7")]), 5.0);
    assert_eq!(text.matches("# HELP apus_fs_test ").count(), 1);
    assert!(!text.contains("kind=\"taken\"") && !text.contains("no name"), "{text}");
}

#[test]
fn the_text_has_every_family_with_its_values() {
    let (server, client) = after_calls(3);
    let text = text(vec![snapshot([&server, &client])], true);
    assert!(text.ends_with("# EOF\n"));
    let samples = parsed(&text);
    let address = client.local_addr().to_string();
    let of_client = [("endpoint", address.as_str()), ("pid", "7")];
    assert_eq!(value(&samples, "apus_client_responses_done_total", &of_client), 3.0);
    assert_eq!(value(&samples, "apus_client_rpcs_failed_total", &of_client), 1.0);
    let data = [("type", "data"), of_client[0]];
    assert!(value(&samples, "apus_packets_sent_total", &data) >= 3.0);
    assert_eq!(value(&samples, "apus_process_cpu_seconds_total", &[("pid", "7")]), 1.5);
    assert_eq!(
        value(&samples, "apus_peers", &[("endpoint", &server.local_addr().to_string())]),
        1.0
    );
    for family in families() {
        // These have the names of OpenTelemetry.
        let rpc = family.name.starts_with("rpc_") && family.kind == FamilyKind::Histogram;
        let stem = family.name.trim_end_matches("_nanos").trim_end_matches("_bytes");
        let name = if rpc { family.name.clone() } else { format!("apus_{stem}") };
        assert!(text.contains(&format!("# HELP {name}")), "{name}");
    }
}

#[test]
fn histograms_have_fixed_bounds_and_rise() {
    let (server, client) = after_calls(3);
    let text = text(vec![snapshot([&server, &client])], false);
    let samples = parsed(&text);
    let histogram = |name: &str, label: (&str, &str)| {
        // Failed calls have a separate sample.
        let failed = label.0 == "error_type";
        let fits = |sample: &&Sample| {
            let labels = &sample.labels;
            sample.metric == name
                && labels.get(label.0) == Some(label.1)
                && labels.get("error_type").is_some() == failed
        };
        let found =
            samples.iter().find(fits).unwrap_or_else(|| panic!("no {name} {label:?}\n{text}"));
        let Value::Histogram(buckets) = &found.value else { panic!("{found:?}") };
        assert!(buckets.is_sorted_by(|one, next| one.count <= next.count));
        let bounds: Vec<f64> = buckets.iter().map(|bucket| bucket.less_than).collect();
        (bounds, buckets.last().unwrap().count)
    };
    let mut otel =
        vec![0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
    otel.push(f64::INFINITY);
    let system = ("rpc_system_name", "apus");
    assert_eq!(histogram("rpc_client_call_duration_seconds", system), (otel.clone(), 3.0));
    let failed = ("error_type", "port_closed");
    assert_eq!(histogram("rpc_client_call_duration_seconds", failed), (otel.clone(), 1.0));
    let port = server.local_addr().port().to_string();
    assert_eq!(histogram("rpc_server_call_duration_seconds", ("server_port", &port)), (otel, 3.0));
    let address = client.local_addr().to_string();
    let (bounds, count) = histogram("apus_message_size_bytes", ("endpoint", &address));
    assert_eq!((bounds[0], bounds[5], count), (64.0, 2_048.0, 3.0));
    let (bounds, count) = histogram("apus_call_duration_seconds", ("endpoint", &address));
    assert_eq!((bounds[0], bounds.len(), count), (1.023e-6, 26, 3.0));
}

#[test]
fn an_exporter_serves_the_process() {
    let (server, client) = after_calls(1);
    let exporter = Exporter::with_source("127.0.0.1:0".parse().unwrap(), false, {
        let (server, client) = (server.clone(), client.clone());
        move || vec![snapshot([&server, &client])]
    });
    let exporter = exporter.unwrap();
    let (head, body) = get(exporter.local_addr(), "GET", "/metrics");
    assert!(
        head.starts_with("HTTP/1.1 200") && head.contains("application/openmetrics-text"),
        "{head}"
    );
    let address = client.local_addr().to_string();
    let before =
        value(&parsed(&body), "apus_client_requests_started_total", &[("endpoint", &address)]);
    assert_eq!(before, 2.0);
    client.send(server.local_addr(), "x", 0).unwrap();
    let (_, body) = get(exporter.local_addr(), "GET", "/metrics");
    let after =
        value(&parsed(&body), "apus_client_requests_started_total", &[("endpoint", &address)]);
    assert_eq!(after, 3.0, "a new snapshot for each request");
    assert!(get(exporter.local_addr(), "GET", "/").1.contains("/metrics"));
    assert!(get(exporter.local_addr(), "GET", "/secrets").0.contains(" 404 "));
    assert!(get(exporter.local_addr(), "POST", "/metrics").0.contains(" 405 "));
    let address = exporter.local_addr();
    drop(exporter);
    assert!(TcpStream::connect(address).is_err(), "it has ended");
}

#[test]
fn a_taken_port_is_an_error() {
    let address = "127.0.0.1:0".parse().unwrap();
    let first = Exporter::start(address).unwrap();
    Exporter::start(first.local_addr()).unwrap_err();
    assert!(get(first.local_addr(), "GET", "/metrics").1.ends_with("# EOF\n"));
}
