//! Configuration files: `--config` reads them, and `apus tune` writes one.

use std::path::PathBuf;

use apus::Settings;
use apus_command_line::testing::ForeignLoad;

use crate::harness::{Service, object, run, text};

/// Writes a file with this content. The folder exists until it is dropped.
fn file(content: &str) -> (PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("apus.toml");
    std::fs::write(&path, content).unwrap();
    (path, folder)
}

#[test]
fn a_service_and_its_client_read_configuration_files() {
    let (path, _folder) =
        file("poll = 'block'\nengine = 'dedicated'\nreceivers = 2\nlocal = false\n");
    let path = path.to_str().unwrap();
    let service = Service::start(&["--config", path]);
    let output = run(["call", &service.address(), "--size", "100000", "--config", path, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// The run is too short to prove much: it ends, and `Settings` can read the written file. A very
/// busy machine needs more time.
#[test]
fn the_file_of_tune_can_be_read() {
    let (path, _folder) = file("");
    let path = path.to_str().unwrap();
    let tune = |seconds: &str| {
        let words = [
            "tune",
            "--goals",
            "throughput",
            "--runs",
            "3",
            "--json",
            "--out",
            path,
            "--seconds",
            seconds,
        ];
        run(words)
    };
    let output = ["5", "20", "80", "320"].into_iter().map(tune).find(|output| {
        let stderr = text(&output.stderr);
        let is_late = output.status.code() == Some(2)
            && stderr.contains("nothing could be tried in the time");
        assert!(is_late || output.status.success(), "{stderr}");
        !is_late
    });
    let json = object(&output.expect("five minutes are enough"));
    assert_eq!(json["experiment"], "tune");
    let rows = json["rows"].as_array().unwrap();
    let notes = json["notes"].to_string();
    for setting in ["poll", "receive_batch", "protocol.unsched_bytes_min", "protocol.burst_bytes"] {
        let values: Vec<_> = rows.iter().filter(|row| row["setting"] == setting).collect();
        if values.is_empty() {
            assert!(notes.contains(&format!("{setting} was not tried")), "{setting}: {json:#}");
            continue;
        }
        // On a busy machine a value is left out, with a note, if a peer was silent for too long.
        assert!(values.len() >= 3 || notes.contains("is left out"), "{json:#}");
        let taken = values.iter().filter(|row| row["taken"] == true).count();
        assert_eq!(taken, 1, "{json:#}");
        let base = values[0];
        assert!(
            base.get("throughput_against").is_none() && base["gbps"].as_f64().unwrap() > 0.0,
            "{base}"
        );
        let Some(other) = values.get(1) else { continue };
        let held = &other["throughput_against"];
        let [low, ratio, high] = ["low", "ratio", "high"].map(|end| held[end].as_f64().unwrap());
        assert!(low <= ratio && ratio <= high && held["rounds"] == 3, "{held}");
    }
    let written = std::fs::read_to_string(path).unwrap();
    assert!(written.contains("# throughput: bytes a second"), "{written}");
    let settings = Settings::read(path).unwrap_or_else(|error| panic!("{error}: {written}"));
    assert_eq!(json["config"]["recommended"]["toml"], settings.toml());
}

/// The record contains the neighbours' effect on the search.
#[test]
fn a_search_survives_a_foreign_load_on_every_core() {
    let _load = ForeignLoad::on_every_core();
    let output = run("tune --seconds 5 --runs 3 --goals latency --json".split(' '));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let phases = &object(&output)["phases"];
    let count = |name: &str| phases[name].as_u64().unwrap_or_else(|| panic!("{phases}"));
    assert!(count("measured") > 0 && count("disturbed") <= count("measured"), "{phases}");
    let incidents = phases["incidents"].as_array().map_or(0, Vec::len) as u64;
    assert!(incidents >= count("disturbed") + count("lost"), "{phases}");
}
