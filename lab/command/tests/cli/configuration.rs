//! Configuration files of experiments: `--config`, and arguments that override it.

use std::path::PathBuf;

use serde_json::Value;

use crate::harness::{object, run, text};

/// Writes a file with this content. The folder exists until it is dropped.
fn file(content: &str) -> (PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("apus.toml");
    std::fs::write(&path, content).unwrap();
    (path, folder)
}

/// Runs a short experiment and returns its configuration.
fn config(words: &[&str]) -> Value {
    let usual = ["bench", "rtt", "--only", "udp", "--seconds", "0.01", "--runs", "1", "--json"];
    let output = run(usual.iter().chain(words));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    object(&output)["config"].clone()
}

#[test]
fn arguments_override_the_file_and_the_file_overrides_the_defaults() {
    let (path, _folder) =
        file("poll = 'block'\nreceive_batch = 9\n[protocol]\nburst_bytes = 15000\n");
    let path = path.to_str().unwrap();
    assert_eq!(config(&[]).get("configuration"), None);
    let configured = config(&["--config", path]);
    assert_eq!(configured["poll"], "block");
    let shown = configured["configuration"].as_str().unwrap();
    for expected in ["poll = \"block\"; receive_batch = 9", "[protocol]; burst_bytes = 15000"] {
        assert!(shown.contains(expected), "{shown}");
    }
    assert_eq!(config(&["--config", path, "--poll", "hybrid=7"])["poll"], "hybrid=7");
}
