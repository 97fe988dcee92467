//! Situation: the sides of a benchmark run in separate processes, as users run them. Every
//! contender completes messages; the runs are far too short for measurements.

use std::env;
use std::process::ExitCode;

use apus::PollMode;
use apus_bench::agent;
use apus_bench::contest::{CONTESTS, ContestOptions};
use apus_bench::options::Repetition;
use apus_testbed::process::{AGENT, Spawner};
use serde_json::Value;

/// Each way of waiting. The test `bench` runs the sides in threads.
fn every_experiment_comes_to_its_result(host: &Spawner) {
    for experiment in CONTESTS {
        let defaults = (experiment.defaults)();
        for poll in [defaults.repetition.poll, PollMode::Hybrid(PollMode::DEFAULT_SPIN)] {
            // Not `udp-gso`: it loses the packets that arrive while its thread is not running, on a
            // busy machine all of them.
            let only = match experiment.name {
                "throughput" => vec!["apus".to_owned(), "tcp".to_owned()],
                _ => Vec::new(),
            };
            // Long enough for each side to be scheduled several times, even on a core shared with a
            // few other programs: a contender that completes no message has no row.
            let repetition = Repetition { seconds: 0.2, runs: 1, poll, seed: 1 };
            let options = ContestOptions { repetition, only, ..defaults.clone() };
            let outcome = experiment.run(&options, host).unwrap().outcome;
            let json: Value = serde_json::from_str(&outcome.json()).expect("one JSON object");
            assert_eq!(json["experiment"], experiment.name);
            for row in json["rows"].as_array().unwrap() {
                for (figure, value) in row.as_object().unwrap() {
                    // `phases` is present if other programs disturbed a measurement.
                    let is_figure = !["name", "phases"].contains(&&figure[..]);
                    assert!(!is_figure || value.as_f64().is_some(), "{figure} of {row}");
                }
            }
            let first = json["rows"][0]["name"].as_str().unwrap();
            assert!(["apus", "self-polling"].contains(&first), "{first}");
            for (name, ratio) in json["ratios"].as_object().unwrap() {
                assert!(ratio["median"].as_f64().unwrap() > 0.0, "{name}: {ratio}");
            }
        }
    }
}

fn main() -> ExitCode {
    if env::args().nth(1).as_deref() == Some(AGENT) {
        return agent::main();
    }
    let filter = env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let host = Spawner::this_program().expect("a program knows its file");
    let run = |name: &str, test: fn(&Spawner)| {
        if filter.as_ref().is_none_or(|part| name.contains(part.as_str())) {
            test(&host);
            println!("test {name} ... ok");
        }
    };
    run("every_experiment_comes_to_its_result", every_experiment_comes_to_its_result);
    ExitCode::SUCCESS
}
