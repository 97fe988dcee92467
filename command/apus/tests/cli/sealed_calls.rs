//! `apus call --sealed`: the messages for mismatched keys.

use std::path::Path;

use crate::harness::{Service, apus, object, run, text};

/// Creates a certificate authority and a host's keys in a new folder, and returns the option for
/// this folder.
fn keys(folder: &Path, name: &str) -> String {
    let folder = folder.join(name);
    let folder = folder.to_str().unwrap();
    let output = run(["keys", "init", "--dir", folder]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    format!("--sealed={folder}")
}

#[test]
fn a_refused_handshake_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let [ours, theirs] = ["ours", "theirs"].map(|name| keys(folder.path(), name));
    let mut service = Service::start(&["--path", "udp", &theirs]);
    let address = service.address();
    let output = run(["call", "--path", "udp", &theirs, &address]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let output = run(["call", "--path", "udp", &ours, &address]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("compare the `ca` files of both hosts"), "{said}");
    // The service reports it too.
    let line = service.error_line("handshake");
    assert!(line.contains("127.0.0.1:") && line.contains("compare the `ca` files"), "{line}");
    let output = run(["call", "--path", "udp", &ours, &address, "--json"]);
    let call = &object(&output)["rows"][0]["by_call"][0];
    assert_eq!(call["outcome"], "not executed", "{call}");
    assert!(call["advice"].as_str().unwrap().starts_with("Cause: "), "{call}");
}

/// A line warns that handshake secrets are logged, but only if some exist: unsealed endpoints have
/// none.
#[test]
fn a_key_log_is_announced() {
    let folder = tempfile::tempdir().unwrap();
    let (sealed, log) = (keys(folder.path(), "keys"), folder.path().join("keys.log"));
    let call = |options: &[&str]| {
        let service = Service::start(options);
        let mut command = apus();
        command.args(["call", "--path", "udp"]).args(options).arg(service.address());
        let output = command.env("SSLKEYLOGFILE", &log).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    let said = call(&[]);
    assert!(!said.contains("SSLKEYLOGFILE") && !log.exists(), "{said}");
    let said = call(&[&sealed]);
    assert!(said.contains(log.to_str().unwrap()) && said.contains("can read and forge"), "{said}");
    assert!(log.exists());
}
