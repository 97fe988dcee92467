//! `apus trace`: recordings, every report on them, charts and exports.

use std::path::Path;

use serde_json::Value;

use crate::harness::{apus, text};

/// Runs a command with `--json` and returns its output.
fn json(arguments: &[&str], files: &[&Path]) -> Value {
    let output = apus().args(arguments).args(files).arg("--json").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_report_reads_recorded_traces() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("traces");
    let seconds = ["--seconds", "0.05", "--poll", "block"];
    let mut record = vec!["trace", "record", "--out", out.to_str().unwrap()];
    record.extend(seconds);
    let recorded = json(&record, &[]);
    assert_eq!(recorded["experiment"], "trace record");
    let names: Vec<_> =
        recorded["rows"].as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert_eq!(names[0], "measured by the client");
    assert_eq!(names[2], "stages in the traces");

    let (client, server) = (out.join("client.tt"), out.join("server.tt"));
    let both = [client.as_path(), server.as_path()];
    let timeline = json(&["trace", "timeline"], &both);
    let way = &timeline["ways"][0];
    assert_eq!(way["way"], "network");
    assert!(way["rpcs"].as_u64().unwrap() > 0);
    // The stages of each RPC add up to its round trip, to the nanosecond.
    assert_eq!(way["means_differ_percent"], 0.0);
    let places: Vec<_> =
        way["stages"].as_array().unwrap().iter().map(|stage| stage["place"].as_str()).collect();
    for place in ["client", "network", "server"] {
        assert!(places.contains(&Some(place)), "{places:?}");
    }
    assert_eq!(timeline["clocks"].as_array().unwrap().len(), 1, "one host");

    for report in ["delays", "rtt", "rpcs", "grants", "handoffs", "lost", "cores"] {
        let found = json(&["trace", report], &both);
        assert_eq!(found["experiment"], format!("trace {report}"));
        assert_eq!(found["traces"].as_array().unwrap().len(), 2);
    }
    let delays = json(&["trace", "delays"], &both);
    assert_eq!(delays["kinds"][0]["name"], "request, short");
}

#[test]
fn traces_become_pages_charts_and_perfetto_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/cmd/traces.in");
    let both = ["client.tt", "server.tt"].map(|name| traces.join(name));
    let run = |command: &mut std::process::Command| {
        let output = command.args(&both).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        output
    };
    let (page, charts) = (at("timeline.html"), at("charts"));
    run(apus().args(["trace", "timeline", "--html"]).arg(&page).arg("--svg").arg(&charts));
    assert!(std::fs::read_to_string(page).unwrap().contains("server wake up"));
    assert!(charts.join("timeline-network.svg").exists());
    let perfetto = at("trace.pftrace");
    let output = run(apus().args(["trace", "export", "--perfetto"]).arg(&perfetto));
    assert!(output.stdout.is_empty());
    // The file is a sequence of messages, each with tag 1.
    assert_eq!(std::fs::read(perfetto).unwrap()[0], 0x0a);
}

/// The traces were recorded on one host, so the true offset is known. The test then moves the
/// server's clock an hour ahead and makes it 50 ppm fast.
#[test]
fn clocks_of_real_traces_are_aligned_by_their_packets() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/cmd/traces.in");
    let folder = tempfile::tempdir().unwrap();
    let (client, away) = (traces.join("client.tt"), folder.path().join("server.tt"));
    let mut trace = apus_trace::Trace::load(&traces.join("server.tt")).unwrap();
    let hour = 3_600_000_000_000;
    let clock = &mut trace.head.clock;
    let fast = (clock.end.monotonic - clock.start.monotonic) / 20_000;
    clock.start.realtime += hour;
    clock.end.realtime += hour + fast;
    clock.end.monotonic += fast;
    trace.save(&away).unwrap();

    let found = json(&["trace", "timeline"], &[&client, &away]);
    let aligned = &found["clocks"][1];
    assert_eq!(aligned["by"], "packets");
    let uncertainty = aligned["uncertainty_us"].as_f64().unwrap();
    let ahead = aligned["ahead_us"].as_f64().unwrap();
    assert!((0.0..10.0).contains(&uncertainty), "{aligned}");
    assert!((ahead - 3.6e9).abs() < 20.0, "{aligned}");
    // Stages on one host are exact except for the rate of its clock; stages on the network are
    // exact to the uncertainty.
    let truth = json(&["trace", "timeline"], &[&client, &traces.join("server.tt")]);
    let stages = |timeline: &Value| -> Vec<(String, f64)> {
        let stage = |it: &Value| {
            let name = format!("{} {}", it["place"], it["stage"]);
            (name, it["times"]["mean_us"].as_f64().unwrap())
        };
        timeline["ways"][0]["stages"].as_array().unwrap().iter().map(stage).collect()
    };
    for ((name, known), (_, found)) in stages(&truth).into_iter().zip(stages(&found)) {
        let allowed = if name.contains("network") { uncertainty } else { known * 1e-4 + 0.01 };
        assert!((known - found).abs() <= allowed, "{name}: {known} {found} ± {allowed}");
    }
}
