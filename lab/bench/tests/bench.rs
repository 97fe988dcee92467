//! Situation: contests. The runs are far too short for measurements; they show the participating
//! contenders, the content of a row, and that the rest of the contract is kept.

use apus::PollMode;
use apus_bench::agent;
use apus_bench::contest::{CONTESTS, Contest, ContestOptions, HANDOFF, RATE, RTT, THROUGHPUT};
use apus_testbed::Error;
use apus_testbed::process::Spawner;
use serde_json::Value;

/// Runs in threads of this process, and returns the JSON output.
fn run(contest: &Contest, change: impl FnOnce(&mut ContestOptions)) -> Result<Value, Error> {
    let mut options = (contest.defaults)();
    let repetition = &mut options.repetition;
    (repetition.seconds, repetition.runs, repetition.poll) = (0.03, 2, PollMode::Block);
    change(&mut options);
    let findings = contest.run(&options, &Spawner::Threads(agent::run))?;
    let json: Value = serde_json::from_str(&findings.outcome.json()).expect("one JSON object");
    for row in &findings.outcome.rows {
        let table = findings.to_string();
        assert!(table.contains(&row.name), "the table has the same rows:\n{table}");
    }
    Ok(json)
}

/// Like [`run`], but requires these rows and figures in the result. A contender that completes no
/// message, because the system does not run its thread in so short a time, has no row: the run is
/// then repeated with ten times the length, and again with a hundred times the length.
fn complete(
    contest: &Contest,
    rows: &[&str],
    figures: &[&str],
    change: impl Fn(&mut ContestOptions),
) -> Value {
    let is_complete = |json: &Value| {
        let has =
            |row: &Value| figures.iter().all(|it| row[format!("{it}_min")].as_f64() > Some(0.0));
        names(json) == rows && json["rows"].as_array().unwrap().iter().all(has)
    };
    let longer = |factor: f64| {
        run(contest, |options| {
            change(options);
            options.repetition.seconds *= factor;
        })
    };
    let short = [1.0, 10.0].into_iter().filter_map(|factor| longer(factor).ok());
    let json = { short }.find(is_complete).unwrap_or_else(|| longer(100.0).unwrap());
    assert_eq!(names(&json), rows);
    has_figures(&json, figures);
    json
}

fn names(json: &Value) -> Vec<&str> {
    let rows = json["rows"].as_array().unwrap();
    rows.iter().map(|row| row["name"].as_str().unwrap()).collect()
}

fn ratios(json: &Value) -> Vec<&str> {
    json["ratios"].as_object().unwrap().keys().map(|name| &name[..]).collect()
}

/// Every row has each of these figures, positive, with least and greatest around it.
fn has_figures(json: &Value, figures: &[&str]) {
    for row in json["rows"].as_array().unwrap() {
        for figure in figures {
            let number = |suffix: &str| row[format!("{figure}{suffix}")].as_f64().unwrap();
            let (least, median, greatest) = (number("_min"), number(""), number("_max"));
            assert!(0.0 < least && least <= median && median <= greatest, "{figure} of {row}");
        }
    }
}

#[test]
fn rtt_has_the_rows_of_the_contract() {
    let rows = ["apus", "udp", "udp-connected", "tcp"];
    let json = complete(&RTT, &rows, &["p50_us", "p99_us", "p999_us"], |_| ());
    assert_eq!(ratios(&json), ["apus/udp", "apus/tcp"]);
    assert!(json["rows"][0]["samples"].as_u64().unwrap() > 0);
}

/// Each message starts with more bytes than the smallest buffer of the system holds.
#[test]
fn datagrams_that_met_a_full_buffer_are_noted_with_the_repair() {
    let json = complete(&THROUGHPUT, &["apus"], &["gbps"], |options| {
        options.only = vec!["apus".to_owned()];
        options.settings.udp.receive_buffer = Some(4096);
        options.repetition.seconds = 0.3;
    });
    let notes = json["notes"].to_string();
    for part in ["datagrams met a full receive buffer", "receive_buffer = 4194304", "apus doctor"] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
}

#[test]
fn throughput_has_the_rows_of_the_contract() {
    // Longer than the others: datagrams that arrive at a UDP socket while its thread is not running
    // are lost.
    let seconds = |options: &mut ContestOptions| options.repetition.seconds = 0.3;
    let rows = ["apus", "udp-gso", "tcp"];
    let json = complete(&THROUGHPUT, &rows, &["gbps", "cpu_ns_per_kb"], seconds);
    assert_eq!(ratios(&json), ["apus/tcp", "apus/udp-gso"]);
}

#[test]
fn rate_has_the_rows_of_the_contract() {
    let rows = ["apus", "tcp", "tcp-batched", "udp-gso"];
    let json = complete(&RATE, &rows, &["krps", "p99_us", "cpu_ns_per_rpc"], |_| ());
    assert!(json["rows"][0]["lock_misses_per_10k"].is_number(), "{json}");
    assert_eq!(ratios(&json), ["apus/tcp", "apus/tcp-batched", "apus/udp-gso"]);
}

#[test]
fn numbers_of_shards_are_compared_by_processor_time() {
    let rows = ["apus shards=1", "apus shards=2"];
    let json = complete(&RATE, &rows, &["krps", "p99_us", "cpu_ns_per_rpc"], |options| {
        options.shards = vec![1, 2];
        options.only = rows.map(str::to_owned).into();
    });
    assert!(json["rows"][1]["lock_misses_per_10k"].is_number(), "{json}");
    assert_eq!(ratios(&json), ["shards=2/shards=1"]);
    let error = run(&RTT, |options| options.shards = vec![2]).unwrap_err().to_string();
    assert_eq!(error, "shards: only `apus-lab bench rate` compares numbers of shards");
}

/// Engine threads count in threads of this process just as in separate processes.
#[test]
fn a_message_changes_hands_once_if_another_thread_polls_and_else_never() {
    let rows = ["self-polling", "receivers=1", "receivers=2", "receivers=3", "receivers=4"];
    let json = complete(&HANDOFF, &rows, &[], |_| ());
    assert_eq!(json["config"]["size"], 64);
    assert_eq!(ratios(&json), [""; 0]);
    for row in json["rows"].as_array().unwrap() {
        let count = |figure: &str| row[figure].as_u64().unwrap();
        assert!(count("messages") > 0, "{row}");
        assert_eq!(count("spurious_wakeups"), 0, "{row}");
        if row["name"] != "self-polling" {
            assert_eq!(count("handoffs"), count("messages"), "{row}");
            assert_eq!(row["handoffs_per_message"], 1.0, "{row}");
        } else if count("keeper_turns") == 0 {
            // The background poller polls in place of a preempted thread.
            assert_eq!(count("handoffs"), 0, "{row}");
            assert_eq!(row["handoffs_per_message"], 0.0, "{row}");
        }
    }
}

#[test]
fn a_result_says_what_was_asked_for() {
    let json = run(&RTT, |options| options.size = 200).unwrap();
    assert_eq!(json["experiment"], "rtt");
    assert_eq!(json["config"]["size"], 200);
    assert_eq!(json["config"]["runs"], 2);
    assert_eq!(json["config"]["poll"], "block");
    assert!(json["config"]["settings"]["tcp"].as_str().unwrap().contains("TCP_NODELAY"));
    assert!(json["machine"]["cpus"].as_u64().unwrap() >= 1);
}

#[test]
fn only_some_contenders_can_be_asked_for() {
    let only = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let json = run(&RTT, |options| options.only = only(&["tcp"])).unwrap();
    assert_eq!(names(&json), ["tcp"]);
    let error = run(&RTT, |options| options.only = only(&["tpc"])).unwrap_err().to_string();
    assert_eq!(
        error,
        "only: `tpc` takes no part in it; these do: apus, apus-untraced, apus-traced, apus-sealed, udp, \
         udp-connected, tcp, tls-tcp"
    );
}

#[test]
fn who_cannot_take_part_sits_out_and_the_result_says_so() {
    let json = run(&RTT, |options| options.size = 100_000).unwrap();
    assert_eq!(names(&json), ["apus", "tcp"]);
    let notes = json["notes"].to_string();
    assert!(notes.contains("udp sits out: 100056 bytes do not fit"), "{notes}");
}

#[test]
fn values_out_of_range_are_refused_before_anything_runs() {
    for contest in CONTESTS {
        let error = run(contest, |options| options.repetition.runs = 0).unwrap_err().to_string();
        assert_eq!(error, "runs: there are 1 to 1000 runs; try 5");
    }
}
