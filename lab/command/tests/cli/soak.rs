//! `apus-lab lab soak`: real processes under faults. The runs are short; they show that calls,
//! faults and the audit happen, and that no files remain.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::cluster::{descendants, is_agent, start_time};
use crate::contract::check;
use crate::harness::{lab, run, text};

/// Returns the soak, with `folder` for its temporary files.
fn soak(folder: &Path, words: &str) -> Command {
    let mut command = lab();
    command.args(["lab", "soak", "--json"]).args(words.split_whitespace());
    command.env("TMPDIR", folder).stdin(Stdio::null());
    command
}

/// Asserts that the counts of a row are consistent, and that no promise is broken.
fn assert_kept(row: &Value) {
    let count = |name: &str| row[name].as_u64().expect("a count");
    assert!(count("answered") > 0, "{row}");
    assert_eq!(count("calls"), count("answered") + count("failed"), "{row}");
    let by_kind = row["failed_by_kind"].as_object().unwrap().values();
    assert_eq!(count("failed"), by_kind.map(|each| each.as_u64().unwrap()).sum::<u64>(), "{row}");
    for promise in ["wrong_bytes", "never_ended", "executed_twice", "untrue"] {
        assert_eq!(count(promise), 0, "{promise}: {row}");
    }
    let incidents = row["incidents"].as_array().unwrap();
    assert_eq!(count("faults"), incidents.len() as u64, "{row}");
    for incident in incidents {
        assert!(incident["recovery_ms"].as_f64().is_some(), "{incident}");
    }
    let names: Vec<&Value> =
        row["processes"].as_array().unwrap().iter().map(|process| &process["name"]).collect();
    assert_eq!(names, ["client", "server"]);
}

#[test]
fn promises_hold_while_processes_are_killed_and_paused() {
    let folder = tempfile::tempdir().unwrap();
    let output = soak(folder.path(), "--seconds 6 --seed 1").output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}{}", text(&output.stdout));
    let json = check("soak", &text(&output.stdout)).unwrap();
    assert_eq!(json["broken"], json!([]));
    assert_eq!(json["config"]["seed"], 1);
    let rows = json["rows"].as_array().unwrap();
    rows.iter().for_each(assert_kept);
    let faults: u64 = rows.iter().map(|row| row["faults"].as_u64().unwrap()).sum();
    assert!(faults > 0, "{json}");
    // Faults that the host cannot inject are listed in the result and in a line.
    let left_out = json["left_out"].to_string();
    assert!(left_out.contains("clock step"), "{left_out}");
    if !rows.iter().any(|row| row["name"] == "ip") {
        assert!(left_out.contains("ip: ") && stderr.contains("left out: ip: "), "{left_out}");
        eprintln!("SKIPPED: {stderr}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "the ledger is removed");
}

/// Without the programs that create a namespace, processes run on the loopback interface.
#[test]
fn without_namespaces_udp_and_memory_run_on_loopback_and_the_rest_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = soak(folder.path(), "--seconds 2");
    let output = command.env("PATH", "/nowhere").output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}{}", text(&output.stdout));
    let json = check("soak", &text(&output.stdout)).unwrap();
    let names: Vec<&Value> =
        json["rows"].as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["udp", "memory"]);
    for line in ["left out: udp: no faults of links", "left out: memory: ", "left out: ip: "] {
        assert!(stderr.contains(line), "{line}: {stderr}");
    }
    let possible = ["kill client", "kill server", "restart server", "pause client", "pause server"];
    for row in json["rows"].as_array().unwrap() {
        for incident in row["incidents"].as_array().unwrap() {
            assert!(possible.iter().any(|fault| incident["fault"] == *fault), "{incident}");
        }
    }
    let mut command = lab();
    let only_ip = command.args(["lab", "soak", "--only", "ip"]).env("PATH", "/nowhere");
    let output = only_ip.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("is not installed"), "{}", text(&output.stderr));
}

#[test]
fn an_interrupt_ends_the_soak_with_its_report_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = soak(folder.path(), "--seconds 3600 --only udp,memory");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let running = loop {
        assert!(child.try_wait().unwrap().is_none(), "it ended before its processes were seen");
        let all = descendants(child.id());
        // Two clients and two servers of each transport.
        if all.keys().filter(|pid| is_agent(pid)).count() == 8 {
            break all;
        }
        thread::yield_now();
    };
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json = check("soak", &text(&output.stdout)).unwrap();
    assert!(json["notes"].to_string().contains("interrupted"), "{json}");
    for (pid, time) in running {
        assert_ne!(start_time(pid), Some(time), "{pid} still runs");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "the ledger is removed");
}

#[test]
fn the_help_says_what_is_left_out() {
    let help = text(&run(["lab", "soak", "--help"]).stdout);
    assert!(help.contains("Left out: a step of the wall clock, unless"), "{help}");
}
