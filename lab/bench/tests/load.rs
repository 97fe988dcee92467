//! Situation: the load experiment. The run is far too short for measurements; it shows that the
//! JSON contract is kept, that the JSON contains only requested results, and that the page is
//! self-contained.

use std::sync::LazyLock;
use std::time::Duration;

use apus::PollMode;
use apus_bench::agent;
use apus_bench::load::{self, LoadOptions};
use apus_bench::options::Repetition;
use apus_report::findings::Findings;
use apus_testbed::process::Spawner;
use serde_json::Value;

/// Options of a run in threads of this process.
fn options() -> LoadOptions {
    let repetition = Repetition {
        seconds: 0.1,
        runs: 2,
        poll: PollMode::Hybrid(PollMode::DEFAULT_SPIN),
        ..LoadOptions::default().repetition
    };
    LoadOptions { rate: Some(2000.0), repetition, ..LoadOptions::default() }
}

/// One run for all tests, with a burst.
static FINDINGS: LazyLock<Findings> = LazyLock::new(|| {
    let options = LoadOptions { burst: Some("2x20ms".parse().unwrap()), ..options() };
    load::run(&options, &Spawner::Threads(agent::run)).unwrap()
});

static JSON: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&FINDINGS.outcome.json()).unwrap());

fn rows() -> &'static [Value] {
    JSON["rows"].as_array().unwrap()
}

#[test]
fn the_contenders_are_apus_and_the_two_ways_to_use_tcp() {
    let names: Vec<&str> = rows().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["apus", "tcp", "tcp-per-request"]);
}

#[test]
fn every_row_has_the_figures_of_the_contract() {
    for row in rows() {
        for figure in ["capacity_krps", "short_p50", "short_p99", "own_load", "messages"] {
            assert!(row[figure].as_f64().unwrap() > 0.0, "{figure} of {row}");
        }
        for figure in ["completed", "completed_min", "completed_max"] {
            assert!((0.0..=1.0).contains(&row[figure].as_f64().unwrap()), "{figure} of {row}");
        }
        for figure in ["recovery_ms", "recovery_ms_max", "recovery_bound_ms", "before_p50_us"] {
            assert!(row.get(figure).is_some(), "{figure} of {row}");
        }
        assert_eq!(row["recovery_ms_runs"].as_array().unwrap().len(), 2, "{row}");
        assert_eq!(row.get("hold_krps"), None, "was not asked for");
    }
}

#[test]
fn only_apus_says_what_it_sent_again() {
    for figure in
        ["resent_share", "capacity_resent_share", "needless_resends", "datagrams_overflowed"]
    {
        let has = |row: &Value| row[figure].as_f64().is_some();
        assert!(rows().iter().map(has).eq([true, false, false]), "{figure}");
    }
    for side in ["client", "server"] {
        assert!(rows()[0]["counters"][side]["resent_discards"].is_u64(), "{side}");
    }
}

#[test]
fn the_burst_brings_more_requests_for_all_contenders() {
    // 100 ms and a burst of 20 ms, twice as fast: 2000 a second for 140 ms, plus the time that a
    // healthy server needs.
    let messages = |row: &Value| row["messages"].as_u64().unwrap();
    // On a very busy machine, some requests have no reply.
    let due = |row: &Value| messages(row) + row["errors"].as_u64().unwrap();
    assert!(due(&rows()[0]) > 200, "{}", rows()[0]);
    assert!(rows().iter().all(|row| due(row) == due(&rows()[0])), "{JSON:?}");
    assert_eq!(JSON["config"]["burst"], "2x20ms");
}

#[test]
fn ratios_compare_slowdowns_and_capacities() {
    let ratios: Vec<&String> = JSON["ratios"].as_object().unwrap().keys().collect();
    let expected = ["tcp", "tcp-per-request"].map(|name| {
        [
            format!("short_p99 {name}/apus"),
            format!("short_p50 {name}/apus"),
            format!("capacity apus/{name}"),
        ]
    });
    assert_eq!(ratios, expected.as_flattened().iter().collect::<Vec<_>>());
}

#[test]
fn the_result_says_what_was_offered() {
    let config = &JSON["config"];
    assert_eq!((&config["path"], &config["capacity_of"]), (&"loopback".into(), &"apus".into()));
    assert_eq!(config["rate_krps"], 2.0);
    let (load, capacity) = (&config["load"], &config["capacity_krps"]);
    let offered = load.as_f64().unwrap() * capacity.as_f64().unwrap();
    assert!((offered / 2.0 - 1.0).abs() < 0.001, "2 of {capacity} krps are {load}");
    let text = FINDINGS.to_string();
    assert!(text.contains("recovery after the disturbance"), "{text}");
    assert!(text.contains("truncated at 1000000 bytes"), "{text}");
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let page = FINDINGS.html();
    for outside in ["http:", "https:", "//", "src=", "href=", "url(", "@import", "<link"] {
        assert!(!page.contains(outside), "the page refers to something by `{outside}`");
    }
    assert_eq!(page.matches("<svg class=\"chart\"").count(), 2);
}

#[test]
fn only_the_named_contenders_take_part() {
    let only = vec!["tcp".to_owned()];
    let repetition = Repetition { runs: 1, ..options().repetition };
    let options = LoadOptions { only, hold: Some(2), repetition, ..options() };
    let outcome = load::run(&options, &Spawner::Threads(agent::run)).unwrap().outcome;
    let json: Value = serde_json::from_str(&outcome.json()).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), 1);
    assert_eq!(json["config"]["capacity_of"], "tcp");
    assert_eq!(json["rows"][0]["hold_by_second"][0].as_array().unwrap().len(), 2);
    assert_eq!(json["rows"][0].get("recovery_ms"), None, "nothing was disturbed");
}

#[test]
fn a_stall_needs_a_process() {
    let only = vec!["tcp".to_owned()];
    let options = LoadOptions { only, stall: Some(Duration::from_millis(5)), ..options() };
    let error = load::run(&options, &Spawner::Threads(agent::run)).unwrap_err().to_string();
    assert!(error.contains("tcp server"), "{error}");
}

#[test]
fn an_unknown_contender_is_refused_before_anything_runs() {
    let options = LoadOptions { only: vec!["quic".to_owned()], ..options() };
    let error = load::run(&options, &Spawner::Threads(agent::run)).unwrap_err().to_string();
    assert!(error.starts_with("only: `quic` takes no part in it"), "{error}");
}
