//! `apus serve` in one process and `apus call` in others, over real sockets. Every byte of a reply
//! is compared with its request.

use std::collections::BTreeSet;
use std::fs;
use std::net::UdpSocket;
use std::process::Stdio;
use std::time::Instant;

use crate::harness::{Service, apus, object, run, text};
use crate::metrics::HANGS;
use apus::trace::{Event, Trace};
use apus_driver::Driver;
use apus_socket::{Udp, UdpConfig};
use apus_wire::DATA_HEADER_LEN;
use rustix::process::Signal;
use serde_json::{Value, json};

/// Returns bytes that also differ at distances of multiples of a packet's payload.
fn bytes(length: usize) -> Vec<u8> {
    (0..length as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// Returns the payload of a full packet to `address`, in bytes.
fn packet_payload(address: &str) -> usize {
    let driver: Box<dyn Driver> = Box::new(Udp::open(&UdpConfig::default()).unwrap());
    let (mut transmit, _receive) = driver.split();
    transmit.packet_limit(address.parse().unwrap()) - DATA_HEADER_LEN
}

/// Sends a file of this length and compares the reply with it.
fn assert_echoed(service: &Service, length: usize) {
    let folder = tempfile::tempdir().unwrap();
    let (request, reply) = (folder.path().join("request"), folder.path().join("reply"));
    fs::write(&request, bytes(length)).unwrap();
    let address = service.address();
    let files = [request.as_os_str(), "--output".as_ref(), reply.as_os_str()];
    let words = ["call", &address, "--json", "--file"].map(AsRef::as_ref);
    let output = run(words.into_iter().chain(files));
    assert_eq!(output.status.code(), Some(0), "{length} bytes: {}", text(&output.stderr));
    assert!(fs::read(&reply).unwrap() == bytes(length), "{length} bytes return unchanged");
    let row = &object(&output)["rows"][0];
    assert_eq!(row["by_call"][0]["bytes"], length);
    assert_eq!(row["identical"], 1);
}

#[test]
fn messages_of_all_lengths_return_unchanged() {
    let service = Service::start(&[]);
    let packet = packet_payload(&service.address());
    for length in [1, packet - 1, packet, packet + 1, 1_000_000] {
        assert_echoed(&service, length);
    }
}

#[test]
fn both_sides_write_traces_of_the_same_calls() {
    let folder = tempfile::tempdir().unwrap();
    let [theirs, mine] = ["server.tt", "client.tt"].map(|name| folder.path().join(name));
    let file = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let service = ["--path", "udp", "--trace", "all", "--trace-file", &file(&theirs)];
    let service = Service::start(&service);
    let words = ["call", &service.address(), "--count", "20", "--quiet", "--path", "udp"];
    let traced = ["--trace", "all", "--trace-file", &file(&mine)];
    let output = run(words.iter().chain(&traced));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    service.signal(Signal::INT);
    assert_eq!(service.end().0, Some(0));
    let ids = |path: &std::path::Path, event| {
        let trace = Trace::load(path).unwrap();
        assert_eq!((trace.head.program.as_str(), trace.head.period), ("apus", 1));
        let records = trace.all(event).map(|(_, record)| record.rpc().unwrap().id());
        records.collect::<BTreeSet<u64>>()
    };
    let called = ids(&mine, Event::Returned);
    assert_eq!(called.len(), 20);
    assert_eq!(called, ids(&theirs, Event::Reply));
}

#[test]
fn the_longest_messages_return_unchanged() {
    let service = Service::start(&[]);
    assert_echoed(&service, 64_000_000);
    assert_echoed(&service, 1 << 26);
}

/// An empty request, and the empty reply to it.
#[test]
fn an_empty_message_is_echoed_on_every_path() {
    let service = Service::start(&[]);
    for path in ["udp", "auto"] {
        let words = ["call", &service.address(), "--size", "0", "--count", "50", "--path", path];
        let output = run(words.into_iter().chain(["--json"]));
        assert_eq!(output.status.code(), Some(0), "{path}: {}", text(&output.stderr));
        let row = &object(&output)["rows"][0];
        assert_eq!((&row["calls"], &row["identical"]), (&50.into(), &50.into()), "{row}");
        assert_eq!(row["by_call"][49]["bytes"], 0);
    }
    service.signal(Signal::TERM);
    assert_eq!(service.end().2, "served 100 messages, 0 bytes\n");
}

#[test]
fn many_clients_and_receivers_at_the_same_time() {
    let service = Service::start(&["--receivers", "3"]);
    let client = || {
        apus()
            .args(["call", &service.address(), "--size", "5000", "--count", "50", "--json"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let clients = [client(), client(), client(), client()];
    for client in clients {
        let output = client.wait_with_output().unwrap();
        let row = &object(&output)["rows"][0];
        assert_eq!((&row["calls"], &row["identical"]), (&50.into(), &50.into()), "{row}");
    }
    service.signal(Signal::TERM);
    let (status, _, stderr) = service.end();
    assert_eq!(status, Some(0));
    assert_eq!(stderr, "served 200 messages, 1000000 bytes\n");
}

#[test]
fn every_poll_mode_works() {
    for poll in ["spin", "block", "hybrid", "hybrid=5"] {
        let service = Service::start(&["--poll", poll]);
        let output = run(["call", &service.address(), "--count", "3", "--size", "20000"]);
        assert_eq!(output.status.code(), Some(0), "{poll}: {}", text(&output.stderr));
    }
}

#[test]
fn both_signals_end_a_service_with_its_totals() {
    for signal in [Signal::TERM, Signal::INT] {
        let service = Service::start(&[]);
        run(["call", &service.address(), "--count", "2"]);
        service.signal(signal);
        let end = service.end();
        assert_eq!(end, (Some(0), String::new(), "served 2 messages, 200 bytes\n".to_owned()));
    }
}

#[test]
fn the_text_has_one_line_per_call_and_a_summary() {
    let service = Service::start(&[]);
    let address = service.address();
    let output = run(["call", &address, "--count", "2", "--size", "7"]);
    let printed = text(&output.stdout);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 4, "{printed}");
    for (index, line) in lines[..2].iter().enumerate() {
        let begin = format!("reply {} from {address}: 7 bytes in ", index + 1);
        assert!(line.starts_with(&begin) && line.ends_with(", identical to the request"), "{line}");
    }
    assert_eq!(lines[2], "2 calls: 2 replies, 2 identical, 0 failed");
    assert!(["min ", ", p50 ", ", p99 ", ", max "].iter().all(|name| lines[3].contains(name)));
    let output = run(["call", &address, "--count", "2", "--quiet"]);
    assert_eq!(text(&output.stdout).lines().count(), 2, "only the summary");
}

#[test]
fn the_list_of_calls_is_limited() {
    let service = Service::start(&[]);
    let words = ["call", &service.address(), "--size", "1", "--count", "10001", "--json"];
    let all = object(&run(words));
    let row = &all["rows"][0];
    assert_eq!((&row["calls"], &row["identical"]), (&json!(10_001), &json!(10_001)));
    assert_eq!(row["by_call"].as_array().unwrap().len(), 10_000);
    assert!(all["notes"][0].as_str().unwrap().contains("first 10000"), "{}", all["notes"]);
    let quiet = object(&run(["call", &service.address(), "--json", "--quiet"]));
    assert_eq!(quiet["rows"][0].get("by_call"), None);
}

#[test]
fn names_resolve() {
    let service = Service::start(&[]);
    let address = service.address().replace("127.0.0.1", "localhost");
    let output = run(["call", &address]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// Returns an address of this host without a listening service.
fn closed_port() -> String {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn a_closed_port_is_reported_with_advice() {
    let address = closed_port();
    let output = run(["call", &address]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
    let error = text(&output.stderr);
    assert!(error.starts_with(&format!("error: call 1 to {address} failed after ")), "{error}");
    assert!(error.contains("port closed at the peer; the request was not executed"), "{error}");
    assert!(error.contains("apus serve"), "{error}");
}

#[test]
fn a_failed_call_ends_the_command_unless_keep_going_is_given() {
    let address = closed_port();
    let call = |more: &[&str]| {
        let words = ["call", &address, "--count", "3", "--json"];
        let output = run(words.iter().chain(more));
        assert_eq!(output.status.code(), Some(1));
        let row = object(&output)["rows"][0].clone();
        assert_eq!(row["by_call"][0]["outcome"], "not executed", "{row}");
        (row["calls"].clone(), row["failed"].clone(), text(&output.stderr))
    };
    let (calls, failed, _) = call(&[]);
    assert_eq!((calls, failed), (1.into(), 1.into()));
    let (calls, failed, stderr) = call(&["--keep-going"]);
    assert_eq!((calls, failed), (3.into(), 3.into()));
    assert!(stderr.ends_with("error: 3 calls failed\n"), "{stderr}");
}

#[test]
fn a_call_to_a_silent_peer_fails() {
    // This socket receives packets and never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let output = run(["call", &address, "--timeout", "0.05"]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    // Nothing has ever answered: more time would not help.
    assert!(error.contains("deadline exceeded") && error.contains("firewall"), "{error}");
    assert!(!error.contains("--timeout"), "{error}");
    let error = text(&run(["call", &address]).stderr);
    assert!(error.contains("peer silent for") && error.contains("firewall"), "{error}");
}

#[test]
fn the_json_names_the_path_of_the_calls() {
    let service = Service::start(&[]);
    let row = |more: &[&str]| {
        let words = ["call", &service.address(), "--json", "--quiet"];
        object(&run(words.iter().chain(more)))["rows"][0].clone()
    };
    let udp = row(&["--path", "udp", "--count", "3"]);
    assert_eq!((&udp["path"], &udp["memory_calls"]), (&"udp".into(), &0.into()), "{udp}");
    assert!(udp["why_not_memory"].as_str().unwrap().contains("--path udp"), "{udp}");
    let first = row(&[]);
    assert_eq!(first["path"] == "memory", first["why_not_memory"].is_null(), "{first}");
    // The first calls may use the network while both ends connect.
    let began = Instant::now();
    let memory = loop {
        let row = row(&["--count", "1000"]);
        if row["path"] == "memory" {
            break row;
        }
        assert!(began.elapsed() < HANGS, "{row}");
    };
    assert!(memory["memory_calls"].as_u64() > Some(0), "{memory}");
    assert!(memory["why_not_memory"].is_null(), "{memory}");
}

#[test]
fn a_client_refuses_requests() {
    let client = apus_client();
    let address = format!("127.0.0.1:{}", client.local_addr().port());
    let error = text(&run(["call", &address]).stderr);
    assert!(error.contains("not serving requests; the request was not executed"), "{error}");
    assert!(error.contains("call a service"), "{error}");
}

fn apus_client() -> ::apus::Endpoint {
    ::apus::Endpoint::client().unwrap()
}

#[test]
fn a_port_in_use_is_reported() {
    let service = Service::start(&[]);
    let output = run(["serve", &service.address()]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains(&service.address()) && error.contains("in use"), "{error}");
    assert!(error.contains("127.0.0.1:0"), "{error}");
}

#[test]
fn a_call_that_failed_leaves_the_output_file_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    fs::write(&old, "as it was").unwrap();
    for path in [&old, &new] {
        let address = closed_port();
        let words = ["call", &address, "--output"].map(AsRef::as_ref);
        let output = run(words.into_iter().chain([path.as_os_str()]));
        assert_eq!(output.status.code(), Some(1));
    }
    assert_eq!(fs::read(&old).unwrap(), b"as it was");
    assert!(!new.exists());
}

#[test]
fn a_service_prints_json() {
    let service = Service::start(&["--json"]);
    run(["call", &service.address(), "--size", "10"]);
    service.signal(Signal::TERM);
    let (status, stdout, stderr) = service.end();
    assert_eq!((status, stderr), (Some(0), String::new()));
    let served: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(served, json!({"messages": 1, "bytes": 10, "unwanted": 0}));
}
