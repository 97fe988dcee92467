//! One measuring command of each kind, on a machine whose cores are all busy with other work.
//!
//! The runs are far too short for meaningful figures. They show that each experiment reaches its
//! result, and that its record contains the effect of the neighbours. If this machine lacks a
//! prerequisite of an experiment, the test prints a message and continues.

use apus_command_line::testing::ForeignLoad;
use serde_json::Value;

use crate::harness::{object, run, skip_reason, text};

/// Runs an experiment, and checks that its question was answered and that its record is complete.
/// Returns its JSON object; `None`, with a message, if this machine lacks a prerequisite.
fn survives(words: &str) -> Option<Value> {
    let output = run(words.split(' ').chain(["--json"]));
    let stderr = text(&output.stderr);
    if let Some(reason) = skip_reason(&stderr) {
        eprintln!("SKIPPED: {words}: {reason}");
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{words}: {stderr}");
    let json = object(&output);
    let count = |name: &str| json["phases"][name].as_u64().unwrap_or_else(|| panic!("{json}"));
    assert!(count("measured") > 0 && count("disturbed") <= count("measured"), "{words}: {json}");
    // Lost and disturbed phases are reported.
    let missing = json["rows"].as_array().unwrap().iter().any(|row| row.get("missing").is_some());
    assert!(!missing || count("lost") > 0, "{words}: {json}");
    let incidents = json["phases"]["incidents"].as_array().map_or(0, Vec::len) as u64;
    assert!(incidents >= count("disturbed") + count("lost"), "{words}: {json}");
    let noted = json["notes"].to_string().contains("measurements were disturbed and are kept");
    assert_eq!(noted, count("disturbed") > 0, "{words}: {json}");
    Some(json)
}

#[test]
fn experiments_survive_a_foreign_load_on_every_core() {
    let _load = ForeignLoad::on_every_core();
    // Long enough for the kernel's clock ticks to distinguish programs.
    let json = survives("bench rtt --seconds 0.5 --runs 1 --only apus,tcp").unwrap();
    assert!(json["phases"]["disturbed"].as_u64() > Some(0), "{json}");
    let incidents = json["phases"]["incidents"].as_array().unwrap();
    let whys = incidents.iter().flat_map(|incident| incident["why"].as_array().unwrap());
    let is_named = |why: &str| why.starts_with("other programs used ") || why.contains("withheld");
    assert!(whys.filter_map(Value::as_str).any(is_named), "{json}");
    let disturbed = |row: &Value| row["phases"]["disturbed"].as_u64().unwrap_or_default();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(Some(rows.iter().map(disturbed).sum()), json["phases"]["disturbed"].as_u64());
    assert!(json["ratios"]["apus/tcp"]["median"].is_number(), "{json}");

    survives("lab handoff --messages 100 --runs 1");
    survives(
        "bench cluster --nodes 2 --link 10mbit --workload w1 --seconds 0.3 --runs 1 --transports apus,tcp",
    );
    survives("demo --seconds 0.1 --runs 1 --no-html");
}
