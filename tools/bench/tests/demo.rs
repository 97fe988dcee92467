//! Situation: the demo. The run is far too short to measure anything; it shows that
//! the contract of its JSON is kept, and that the page needs nothing but itself.

#[path = "../../report/tests/browser/mod.rs"]
mod browser;

use std::sync::LazyLock;

use apus::PollMode;
use apus_bench::agent;
use apus_bench::demo::{self, Options};
use apus_bench::options::Repetition;
use apus_report::findings::Findings;
use apus_testbed::process::Spawner;
use serde_json::Value;

/// One run for all tests, in threads of this process.
static FINDINGS: LazyLock<Findings> = LazyLock::new(|| {
    let repetition = Repetition {
        seconds: 0.05,
        runs: 2,
        poll: PollMode::Hybrid(PollMode::DEFAULT_SPIN),
        ..Options::default().repetition
    };
    let options = Options { rate: Some(2000.0), repetition, ..Options::default() };
    demo::run(&options, &Spawner::Threads(agent::run)).unwrap()
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
        for figure in ["short_p50", "short_p99", "all_p50", "all_p99", "mean_by_bytes"] {
            let slowdown = row[figure].as_f64().unwrap();
            assert!(slowdown > 0.5, "{figure} is {slowdown}: no transport is faster than the best");
        }
        for figure in ["offered_load", "achieved_load", "messages"] {
            assert!(row[figure].as_f64().unwrap() > 0.0, "{figure} of {row}");
        }
        assert_eq!(row["errors"], 0);
    }
}

#[test]
fn every_message_is_in_one_group_of_sizes() {
    for row in rows() {
        let groups = row["by_size"].as_array().unwrap();
        let counted: u64 = groups.iter().map(|group| group["count"].as_u64().unwrap()).sum();
        assert_eq!(counted, row["messages"].as_u64().unwrap());
        assert_eq!(groups[groups.len() - 1]["upto"], 1_000_000, "truncated there");
    }
}

#[test]
fn all_contenders_carry_the_same_messages() {
    let counts = |row: &Value| -> Vec<u64> {
        let groups = row["by_size"].as_array().unwrap();
        groups.iter().map(|group| group["count"].as_u64().unwrap()).collect()
    };
    assert_eq!(counts(&rows()[0]), counts(&rows()[1]));
    assert_eq!(counts(&rows()[0]), counts(&rows()[2]));
}

#[test]
fn everybody_else_is_compared_with_apus() {
    let ratios: Vec<&str> =
        JSON["ratios"].as_object().unwrap().keys().map(|key| &key[..]).collect();
    let expected = [
        "short_p99 tcp/apus",
        "short_p50 tcp/apus",
        "short_p99 tcp-per-request/apus",
        "short_p50 tcp-per-request/apus",
    ];
    assert_eq!(ratios, expected);
}

#[test]
fn the_result_says_what_a_hundred_percent_are() {
    let config = &JSON["config"];
    assert_eq!(config["workload"], "w4");
    assert_eq!(config["truncate"], 1_000_000);
    assert_eq!(config["rate_krps"], 2.0);
    assert!(config["capacity_krps"].as_f64().unwrap() > 0.0);
    let slowest = config["capacity_of"].as_str().unwrap();
    assert!(["apus", "tcp", "tcp-per-request"].contains(&slowest));
    let load = config["load"].as_f64().unwrap();
    let capacity = config["capacity_krps"].as_f64().unwrap();
    assert!((load * capacity / 2.0 - 1.0).abs() < 0.001, "2 of {capacity} krps are {load}");
    let text = FINDINGS.to_string();
    assert!(text.contains("100 % is") && text.contains("truncated at 1000000 bytes"), "{text}");
    assert!(text.contains("loopback of one machine"), "{text}");
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let page = FINDINGS.html();
    for outside in ["http:", "https:", "//", "src=", "href=", "url(", "@import", "<link"] {
        assert!(!page.contains(outside), "the page refers to something by `{outside}`");
    }
    let content = browser::content(&page);
    for broken in ["NaN", "inf", "undefined", "none"] {
        assert!(!content.contains(broken), "the page shows `{broken}`");
    }
}

#[test]
fn the_page_shows_every_contender_with_its_settings() {
    let page = FINDINGS.html().replace("&#x27;", "'");
    assert_eq!(page.matches("<svg class=\"chart\"").count(), 2);
    for row in rows() {
        let name = row["name"].as_str().unwrap();
        let settings = JSON["config"]["settings"][name].as_str().unwrap();
        assert!(page.contains(&format!("<b>{name}</b>")) && page.contains(settings), "{name}");
        // Two lines of each contender in the first chart, one in the second.
        assert_eq!(page.matches(&format!("<g data-name=\"{name}\"")).count(), 3, "{name}");
    }
    assert!(page.contains("prefers-color-scheme: dark"));
}

#[test]
fn the_page_opens_in_a_browser() {
    let asked = "return [...document.querySelectorAll('.legend button')].length";
    if let Some(buttons) = browser::open(&FINDINGS.html(), (2, 2), asked) {
        // One for each contender and one for the axis, in each chart.
        assert_eq!(buttons, 2 * (rows().len() + 1));
    }
}

#[test]
fn what_is_out_of_range_is_refused_before_anything_runs() {
    let mut options = Options::default();
    options.sizes.workload = "w7".to_owned();
    let error = demo::run(&options, &Spawner::Threads(agent::run)).unwrap_err().to_string();
    assert!(error.starts_with("workload: `w7` is not a workload"), "{error}");
}
