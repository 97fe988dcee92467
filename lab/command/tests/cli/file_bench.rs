//! `apus-lab fs bench`, with few works.

use std::path::Path;

use serde_json::Value;

use crate::harness::{apus, object, run, text};

/// Returns the row of a work by a peer.
fn row<'a>(object: &'a Value, peer: &str, work: &str) -> &'a Value {
    let rows = object["rows"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == peer && row["work"] == work).unwrap()
}

/// A path of `--peer` takes part next to the local directory, and is empty afterwards.
#[test]
fn a_given_path_is_measured_beside_a_local_directory() {
    let directory = tempfile::tempdir().unwrap();
    let peer = format!("given={}", directory.path().display());
    let words = ["--peer", &peer, "--only", "local,given", "--work", "create,append-fsync"];
    let found = run(["fs", "bench", "--runs", "2", "--json"].iter().chain(&words));
    assert!(found.status.success(), "{}", text(&found.stderr));
    let object = object(&found);
    assert_eq!(object["experiment"], "fs bench");
    for peer in ["local", "given"] {
        for work in ["create", "append-fsync"] {
            let row = row(&object, peer, work);
            assert_eq!(row["rtt_ms"], 0.02);
            for figure in ["seconds", "per_second", "p50_us", "p99_us"] {
                assert!(row[figure].is_number(), "{figure} in {row}");
            }
        }
    }
    assert_eq!(object["rows"].as_array().unwrap().len(), 4);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// The product counts its calls. (FSBENCH-3: the folder of directories in memory is empty
/// afterwards.)
#[test]
fn apus_counts_its_calls() {
    if apus().is_none() {
        return;
    }
    if !Path::new("/dev/fuse").exists() || !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root mounts without the package fuse3");
        return;
    }
    let words = ["--only", "apus,local", "--work", "sync-500,fsync-500,find-443", "--runs", "1"];
    let found = run(["fs", "bench", "--json"].iter().chain(&words));
    assert!(found.status.success(), "{}", text(&found.stderr));
    let object = object(&found);
    let calls = |work| row(&object, "apus", work)["calls"].as_f64().unwrap();
    assert!(calls("sync-500") >= 1.0);
    // Each fsync is answered when its batch is durable, so no two consecutive fsyncs share a call.
    assert!(calls("fsync-500") >= 500.0, "{}", calls("fsync-500"));
    assert!(calls("find-443") >= 1.0);
    assert!(row(&object, "local", "sync-500").get("calls").is_none());
    let ratio = &object["ratios"]["seconds apus/local sync-500 0.02"]["median"];
    assert!(ratio.is_number(), "{ratio}");
}

/// No packet arrives before its delay has passed (DELAY-1): an append with fsync takes at least a
/// round trip.
#[test]
fn a_round_trip_time_is_kept() {
    if apus().is_none() {
        return;
    }
    let words = ["--only", "apus", "--work", "append-fsync", "--runs", "1", "--rtt", "5"];
    let found = run(["fs", "bench", "--json"].iter().chain(&words));
    let said = text(&found.stdout) + &text(&found.stderr);
    if said.contains("RTT 5 ms is not measured") || said.contains("cannot be measured") {
        eprintln!("SKIPPED: {said}");
        return;
    }
    assert!(found.status.success(), "{said}");
    let object = object(&found);
    let rows = object["rows"].as_array().unwrap();
    let delayed = rows.iter().find(|row| row["rtt_ms"] == 5.0).unwrap();
    assert!(delayed["p50_us"].as_f64().unwrap() >= 5_000.0, "{delayed}");
    assert!(delayed["calls"].as_f64().unwrap() >= 300.0, "{delayed}");
}

#[test]
fn wrong_options_are_refused_by_name() {
    for (words, part) in [
        (["--rtt", "0"], "--rtt"),
        (["--work", "sync"], "sync-500"),
        (["--peer", "nfs"], "NAME=PATH"),
        (["--runs", "0"], "--runs"),
    ] {
        let found = run(["fs", "bench"].iter().chain(&words));
        assert_eq!(found.status.code(), Some(2), "{words:?}");
        assert!(text(&found.stderr).contains(part), "{}", text(&found.stderr));
    }
}
