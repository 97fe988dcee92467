//! Situation: somebody wants to know where the microseconds go, records traces, and looks at them.

use std::path::Path;

use serde_json::Value;

use crate::service::{apus, text};

/// What a command prints as JSON.
fn json(arguments: &[&str], files: &[&Path]) -> Value {
    let output = apus().args(arguments).args(files).arg("--json").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn recorded_traces_can_be_asked_everything() {
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
    // Each RPC's stages are its round trip, to the nanosecond.
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
    // A file of one message after the other, each with tag 1.
    assert_eq!(std::fs::read(perfetto).unwrap()[0], 0x0a);
}

/// Recorded on one host, so it is known what is true; then the server's clock is said to be an hour ahead, and 50
/// millionths fast.
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
    // To the nanosecond they are the truth where no other clock is concerned, and to the uncertainty elsewhere.
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
