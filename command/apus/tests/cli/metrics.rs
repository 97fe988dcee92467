//! `apus metrics` of a running service and its client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{Service, apus, object, text};

/// Returns `apus` with this folder as its runtime directory: it finds other processes there, and
/// they find it.
pub(crate) fn in_folder(folder: &Path) -> Command {
    let mut command = apus();
    command.env("APUS_RUNTIME_DIR", folder.join("apus")).env_remove("APUS_LIVE");
    command
}

/// Time limit after which a test fails. No working step takes that long.
pub(crate) const HANGS: Duration = Duration::from_secs(120);

/// A process that is killed when the test ends.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a service, and a client that calls it over the network until it is killed.
pub(crate) fn service_and_client(folder: &Path) -> (Service, Killed) {
    let service = Service::start_as(in_folder(folder), &["--path", "udp"]);
    let mut client = in_folder(folder);
    client.args(["call", &service.address(), "--path", "udp", "--quiet", "--count", "10000000"]);
    client.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
    (service, Killed(client.spawn().unwrap()))
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    in_folder(folder).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Waits until a process receives messages within an interval, and returns its activity in that
/// interval as JSON.
fn activity(folder: &Path, pid: u32) -> Value {
    let pid = pid.to_string();
    let began = Instant::now();
    loop {
        // A client that has just started may not have an endpoint yet.
        let output = run(folder, &["metrics", &pid, "--interval", "0.2", "--json"]);
        if output.status.success() {
            let json = object(&output);
            let process = json["processes"][0].clone();
            if process["received"]["messages_per_second"].as_f64().unwrap() > 0.0 {
                return process;
            }
        }
        assert!(began.elapsed() < HANGS, "no progress: {}", text(&output.stderr));
    }
}

#[test]
fn the_json_contains_rates_cores_and_ways_to_receive() {
    let folder = tempfile::tempdir().unwrap();
    let (service, client) = service_and_client(folder.path());
    let process = activity(folder.path(), client.0.id());
    assert_eq!((&process["pid"], &process["program"]), (&client.0.id().into(), &"apus".into()));
    let rate = |name: &str| process["counters"][name]["per_second"].as_f64().unwrap();
    assert!(rate("client_responses_done") > 0.0 && rate("packets_sent.data") > 0.0);
    assert!(process["counters"].get("rpc_timeouts").is_none(), "the counter has not changed");
    let part = |name: &str| process["cores"][name].as_f64().unwrap();
    assert!(part("process") > 0.0, "{}", process["cores"]);
    let ways =
        ["immediately", "polling", "asleep"].map(|way| process["received"][way].as_f64().unwrap());
    assert!((ways.iter().sum::<f64>() - 1.0).abs() < 1e-3, "{ways:?}");
    assert!(process["histograms"]["call_nanos"]["p50"].as_u64().unwrap() > 0);
    assert!(process["gauges"]["peers"] == 1);
    assert_eq!(process["senders"]["count"], 0, "each message fits into one packet");
    let server = activity(folder.path(), service.pid());
    assert_eq!(server["endpoints"][0], service.address());
    assert!(server["counters"]["server_requests_done"]["change"].as_u64().unwrap() > 0);
}

#[test]
fn the_text_contains_tables() {
    let folder = tempfile::tempdir().unwrap();
    let (_service, client) = service_and_client(folder.path());
    activity(folder.path(), client.0.id());
    let pid = client.0.id().to_string();
    let output = run(folder.path(), &["metrics", &pid, "--interval", "0.2", "--count", "2"]);
    let stdout = text(&output.stdout);
    assert_eq!(stdout.matches(&format!("process {pid}, apus at")).count(), 2, "{stdout}");
    let parts =
        ["cores used", "how messages were received", "call, µs", "client_responses_done", "canar"];
    for part in parts {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
}

/// A long request is arriving: `apus metrics` shows the bytes that its sender may send, and the
/// sender's reported backlog.
#[test]
fn senders_have_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("slow.toml").display().to_string();
    // 64 MB take a minute at 8 Mbit/s.
    std::fs::write(&file, "[protocol]\ninformed_incoming = 18000\nlink_mbps = 8\n").unwrap();
    let service =
        Service::start_as(in_folder(folder.path()), &["--path", "udp", "--config", &file]);
    let mut client = in_folder(folder.path());
    client.args(["call", &service.address(), "--path", "udp", "--size", "64000000"]);
    client.args(["--config", &file, "--timeout", "3600"]).stdin(Stdio::null());
    let mut client = Killed(client.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let pid = service.pid().to_string();
    let shown = loop {
        let output = run(folder.path(), &["metrics", &pid, "--interval", "0.05"]);
        let shown = text(&output.stdout);
        if shown.contains("messages are arriving from 1 peer") {
            break shown;
        }
        assert!(client.0.try_wait().unwrap().is_none(), "the call has ended: {shown}");
    };
    for part in ["credit KB", "in use KB", "backlog KB", "marks", &service.address()] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let json = object(&run(folder.path(), &["metrics", &pid, "--interval", "0.05", "--json"]));
    let row = &json["processes"][0]["senders"]["rows"][0];
    assert!(row["credit"].is_u64() && row["reported_backlog"].is_u64(), "{json}");
    assert_eq!(row["marks"], 0, "{json}");
}

#[test]
fn one_of_several_processes_must_be_selected() {
    let folder = tempfile::tempdir().unwrap();
    let (service, client) = service_and_client(folder.path());
    activity(folder.path(), client.0.id());
    let output = run(folder.path(), &["metrics"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    for pid in [service.pid(), client.0.id()] {
        assert!(
            stderr.contains(&format!("apus metrics {pid}")) && stderr.contains("--all"),
            "{stderr}"
        );
    }
    let all = object(&run(folder.path(), &["metrics", "--all", "--interval", "0.05", "--json"]));
    assert_eq!(all["processes"].as_array().unwrap().len(), 2);
    drop(client);
    let one = run(folder.path(), &["metrics", "--interval", "0.05"]);
    assert!(one.status.success(), "{}", text(&one.stderr));
    assert!(text(&one.stdout).contains(&format!("process {}", service.pid())));
}

#[test]
fn counters_are_saved_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start_as(in_folder(folder.path()), &["--path", "udp"]);
    let files = ["old", "new"].map(|name| folder.path().join(name).display().to_string());
    for file in &files {
        let call = ["call", &service.address(), "--path", "udp", "--count", "5", "--quiet"];
        assert!(run(folder.path(), &call).status.success());
        let output = run(folder.path(), &["metrics", "--save", file]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let output = run(folder.path(), &["metrics", "--diff", &files[0], &files[1], "--json"]);
    let process = object(&output)["processes"][0].clone();
    assert_eq!(process["counters"]["server_requests_done"]["change"], 5);
    assert_eq!(process["counters"]["server_requests_done"]["value"], 10);
    let output = run(folder.path(), &["metrics", "--diff", &files[0], &files[0]]);
    assert!(text(&output.stderr).contains("nothing to compare"), "{}", text(&output.stderr));
    std::fs::write(&files[0], "[]x").unwrap();
    let output = run(folder.path(), &["metrics", "--diff", &files[0], &files[1]]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("contains no counters of apus"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn prometheus_reads_all_processes() {
    let folder = tempfile::tempdir().unwrap();
    let (service, client) = service_and_client(folder.path());
    activity(folder.path(), client.0.id());
    let printed = text(&run(folder.path(), &["metrics", "--all", "--prometheus"]).stdout);
    let mut exporter = in_folder(folder.path());
    exporter.args(["metrics", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
    let mut exporter = Killed(exporter.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(exporter.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("listening on http://").unwrap();
    let mut stream = TcpStream::connect(url.strip_suffix("/metrics").unwrap()).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut scraped = String::new();
    stream.read_to_string(&mut scraped).unwrap();
    for text in [printed, scraped] {
        for pid in [service.pid(), client.0.id()] {
            let of = format!("pid=\"{pid}\"");
            let of_process =
                |line: &&str| line.starts_with("apus_messages_total{") && line.contains(&of);
            assert!(text.lines().any(|line| of_process(&line)), "{pid}: {text}");
        }
        assert!(text.contains("# TYPE rpc_client_call_duration_seconds histogram"));
        assert!(text.ends_with("# EOF\n"));
    }
    kill_process(Pid::from_child(&exporter.0), Signal::TERM).unwrap();
    assert_eq!(exporter.0.wait().unwrap().code(), Some(0));
}

/// Waits until the system has stopped a process.
pub(crate) fn stop(service: &Service) {
    service.signal(Signal::STOP);
    let stat = format!("/proc/{}/stat", service.pid());
    let began = Instant::now();
    while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
        assert!(began.elapsed() < HANGS, "it is not stopped");
        std::thread::yield_now();
    }
}

/// A scrape of the exporter that serves all processes of a folder.
fn scrape(folder: &Path) -> String {
    let mut exporter = in_folder(folder);
    exporter.args(["metrics", "--all", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
    let mut exporter = Killed(exporter.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(exporter.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("listening on http://").unwrap();
    let mut stream = TcpStream::connect(url.strip_suffix("/metrics").unwrap()).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut scraped = String::new();
    stream.read_to_string(&mut scraped).unwrap();
    scraped
}

/// Processes in a debugger, or stopped by a signal, do not respond. Every tool shows the others.
#[test]
fn stopped_processes_are_named_and_hide_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let services: Vec<_> =
        (0..4).map(|_| Service::start_as(in_folder(folder.path()), &["--path", "udp"])).collect();
    let (stopped, live) = services.split_at(3);
    stopped.iter().for_each(stop);
    let pids = |services: &[Service]| services.iter().map(Service::pid).collect::<Vec<_>>();

    let all = object(&run(folder.path(), &["metrics", "--all", "--interval", "0.05", "--json"]));
    let listed = |key: &str| {
        let all = all[key].as_array().unwrap().iter();
        all.map(|one| one["pid"].as_u64().unwrap() as u32).collect::<Vec<_>>()
    };
    let mut expected = pids(stopped);
    expected.sort_unstable();
    assert_eq!((listed("processes"), listed("silent")), (pids(live), expected), "{all}");
    let reason = all["silent"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("does not respond: it is stopped"), "{reason}");

    let output = run(folder.path(), &["metrics", "--all", "--interval", "0.05"]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(shown.contains(&format!("process {}, apus at", live[0].pid())), "{shown}");
    let printed = text(&run(folder.path(), &["metrics", "--all", "--prometheus"]).stdout);
    for text in [&printed, &scrape(folder.path())] {
        let up = |service: &Service| {
            let line = format!("apus_up{{pid=\"{}\",program=\"apus\"}} ", service.pid());
            text.lines().find_map(|found| found.strip_prefix(&line))
        };
        assert!(stopped.iter().all(|service| up(service) == Some("0")), "{text}");
        assert_eq!(up(&live[0]), Some("1"), "{text}");
        let of = |service: &Service| {
            let pid = format!("pid=\"{}\"", service.pid());
            text.lines().filter(|line| line.contains(&pid)).count()
        };
        assert!(of(&stopped[0]) == 1 && of(&live[0]) > 100, "{text}");
    }

    let choice = run(folder.path(), &["metrics"]);
    let stderr = text(&choice.stderr);
    for service in &services {
        assert!(stderr.contains(&format!("apus metrics {} ", service.pid())), "{stderr}");
    }
    let status = run(folder.path(), &["trace", "status", "--all", "--json"]);
    let json = object(&status);
    assert_eq!(json["processes"][0]["pid"], live[0].pid(), "{json}");
    assert_eq!((json["silent"].as_array().unwrap().len(), status.status.code()), (3, Some(1)));
    let doctor = object(&run(folder.path(), &["doctor", "--json"]));
    let rows = doctor["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "silent-processes").unwrap();
    let found = row["found"].as_str().unwrap();
    assert!(found.starts_with("3 processes have endpoints and do not respond"), "{row}");
    let files = object(&run(folder.path(), &["fs", "status", "--json"]));
    assert_eq!(files["silent"].as_array().unwrap().len(), 3, "{files}");

    // Continued, all of them respond.
    stopped.iter().for_each(|service| service.signal(Signal::CONT));
    let all = object(&run(folder.path(), &["metrics", "--all", "--interval", "0.05", "--json"]));
    assert_eq!(all["processes"].as_array().unwrap().len(), 4, "{all}");
}

#[test]
fn a_process_that_ends_between_two_snapshots_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start_as(in_folder(folder.path()), &[]);
    let pid = service.pid().to_string();
    let mut metrics = in_folder(folder.path());
    metrics.args(["metrics", &pid, "--interval", "0.2", "--count", "0"]);
    metrics.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut metrics = metrics.spawn().unwrap();
    // It has taken two snapshots.
    let mut shown = BufReader::new(metrics.stdout.take().unwrap());
    shown.read_line(&mut String::new()).unwrap();
    drop(service);
    let mut rest = String::new();
    shown.read_to_string(&mut rest).unwrap();
    let output = metrics.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), format!("error: process {pid} has ended\n"));
}

#[test]
fn a_process_that_does_not_exist_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["metrics", "4294967295"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("process 4294967295 has no apus endpoint"), "{stderr}");
}
