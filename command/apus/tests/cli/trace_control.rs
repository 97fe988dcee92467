//! Time traces of a running service: dumped, frozen, resumed, and written by the service itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Service, object, text};
use crate::metrics::in_folder;

/// Runs a command that must succeed, and returns its output.
fn stdout(folder: &Path, arguments: &[&str]) -> String {
    let output = in_folder(folder).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Runs a command with `--json` that must succeed, and returns its output.
fn json(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(folder, &[arguments, &["--json"]].concat())).unwrap()
}

/// Calls a service `count` times, one call after another.
fn call(folder: &Path, service: &Service, count: u32, more: &[&str]) {
    let (address, count) = (service.address(), count.to_string());
    let words = ["call", &address, "--path", "udp", "--quiet", "--count", &count];
    stdout(folder, &[&words[..], more].concat());
}

fn service(folder: &Path) -> Service {
    Service::start_as(in_folder(folder), &["--path", "udp", "--trace", "all"])
}

/// Returns the files in a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn the_trace_of_a_service_is_read_together_with_its_clients() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (client, server) = (at("client.tt"), at("server.tt"));
    let service = service(folder.path());
    call(folder.path(), &service, 7, &["--trace", "all", "--trace-file", &client]);
    let written = json(folder.path(), &["trace", "dump", "--out", &server]);
    let written = &written["traces"][0];
    assert_eq!(
        (&written["pid"], &written["file"]),
        (&service.pid().into(), &server.clone().into())
    );
    assert_eq!(written["frozen"], Value::Null);
    assert!(written["records"].as_u64().unwrap() > 0);

    let alone = json(folder.path(), &["trace", "rpcs", &server]);
    assert_eq!(alone["rpcs"], 7);
    let both = json(folder.path(), &["trace", "rpcs", &client, &server]);
    assert_eq!((both["traces"].as_array().unwrap().len(), &both["rpcs"]), (2, &7.into()));
    let timeline = json(folder.path(), &["trace", "timeline", &client, &server]);
    assert_eq!(timeline["ways"][0]["rpcs"], 7, "client and server of each");
}

#[test]
fn a_service_is_frozen_and_resumed_and_reports_its_status() {
    let folder = tempfile::tempdir().unwrap();
    let service = service(folder.path());
    let pid = service.pid().to_string();
    call(folder.path(), &service, 3, &[]);
    let ask =
        |words: &[&str]| json(folder.path(), &[&["trace"], words].concat())["processes"][0].clone();
    let before = ask(&["status"]);
    assert_eq!((&before["pid"], &before["recording"]), (&service.pid().into(), &true.into()));
    assert_eq!((&before["sampling"], &before["frozen"]), (&"all".into(), &Value::Null));
    let frozen = ask(&["freeze", &pid]);
    assert_eq!((&frozen["frozen"], &frozen["changed"]), (&"demand".into(), &true.into()));
    call(folder.path(), &service, 3, &[]);
    let status = stdout(folder.path(), &["trace", "status"]);
    for part in [&format!("process {pid}, apus at "), "frozen ", "s ago (demand)"] {
        assert!(status.contains(part), "{part}: {status}");
    }
    // No record was added since: the file contains the first three calls.
    let traces = folder.path().join("not/there/yet").display().to_string();
    let line = stdout(folder.path(), &["trace", "dump", "--all", "--out", &traces]);
    let file = &files(Path::new(&traces))[..];
    assert!(file.len() == 1 && file[0].display().to_string().ends_with(&format!("-{pid}.tt")));
    assert!(line.contains("frozen (demand)") && line.contains(&pid), "{line}");
    let rpcs = json(folder.path(), &["trace", "rpcs", &file[0].display().to_string()]);
    assert_eq!(rpcs["rpcs"], 3);
    let resumed = ask(&["resume", "--all"]);
    assert_eq!((&resumed["recording"], &resumed["changed"]), (&true.into(), &true.into()));
    let resumed = stdout(folder.path(), &["trace", "resume"]);
    assert!(resumed.contains("every RPC is recorded"), "{resumed}");
}

#[test]
fn a_process_that_records_nothing_cannot_be_frozen_and_one_of_several_must_be_selected() {
    let folder = tempfile::tempdir().unwrap();
    let silent = Service::start_as(in_folder(folder.path()), &["--trace", "off"]);
    let run = |words: &[&str]| in_folder(folder.path()).args(words).output().unwrap();
    let output = run(&["trace", "freeze"]);
    assert_eq!(output.status.code(), Some(1));
    let error = format!("process {}: it records no time trace", silent.pid());
    assert!(text(&output.stderr).contains(&error), "{}", text(&output.stderr));
    let other = service(folder.path());
    let output = run(&["trace", "dump", "--out", "/dev/null/x"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let output = run(&["trace", "status"]);
    assert_eq!(output.status.code(), Some(1));
    let list = text(&output.stderr);
    for pid in [silent.pid(), other.pid()] {
        assert!(list.contains(&format!("apus trace status {pid}")), "{list}");
    }
    assert_eq!(
        object(&run(&["trace", "status", "--all", "--json"]))["processes"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn slow_calls_write_files_if_the_configuration_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let traces = folder.path().join("left");
    let config = folder.path().join("apus.toml");
    let content = format!(
        "[trace]\nfolder = {:?}\nmax_files = 2\nslow_rpc_usecs = 1\n",
        traces.display().to_string()
    );
    fs::write(&config, content).unwrap();
    let service = service(folder.path());
    let server = folder.path().join("server.tt").display().to_string();
    call(folder.path(), &service, 1, &["--trace", "all", "--config", config.to_str().unwrap()]);
    stdout(folder.path(), &["trace", "dump", "--out", &server]);
    let files = files(&traces);
    let file = files[0].display().to_string();
    assert!(files.len() == 1 && file.ends_with("-slow_rpc-1.tt"), "{files:?}");
    let rpcs = json(folder.path(), &["trace", "rpcs", &file, &server]);
    assert_eq!(rpcs["rpcs"], 1, "the same call in both: {rpcs}");
}
