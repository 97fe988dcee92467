//! Situation: an experiment has its sides in processes of their own. It comes to its result; and if
//! something happens to one of them, no process stays behind, and what went wrong reaches the parent.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use apus_lab::bench::{EXPERIMENTS, Options};
use apus_lab::process::{AGENT, Agent, Control, Host, Task, agent_main};
use apus_lab::{Error, Poll, agent, demo};
use serde_json::{Value, json};

/// What the agents of these tests do.
fn work(task: &Task, control: &mut Control) -> Result<Value, Error> {
    match task.job.as_str() {
        "double" => Ok(json!(task.details.as_u64().expect("a number") * 2)),
        "serve" => {
            let (wakes, woken) = std::sync::mpsc::channel();
            // Nobody listens any more if it is woken twice.
            control.stop().wake_with(move || {
                let _ = wakes.send(());
            });
            control.ready(([127, 0, 0, 1], 7).into())?;
            woken.recv().expect("the sender lives as long as the control");
            Ok(json!("served"))
        }
        "refuse" => Err(Error::Peer("no such luck".to_owned())),
        "panic" => panic!("something that should never happen"),
        // A side of an experiment.
        _ => agent::run(task, control),
    }
}

fn start(host: &Host, job: &str, details: Value) -> Agent {
    let name = format!("{job} agent");
    let task = Task { name, core: None, job: job.to_owned(), details };
    host.start(task).expect("this program can be started again")
}

fn a_result_reaches_the_parent(host: &Host) {
    let agent = start(host, "double", json!(21));
    assert_eq!(agent.result::<u64>(Duration::ZERO).unwrap(), 42);
}

fn a_server_is_ready_and_stops_when_told(host: &Host) {
    let mut agent = start(host, "serve", json!(null));
    assert_eq!(agent.address().unwrap(), ([127, 0, 0, 1], 7).into());
    assert_eq!(agent.stop::<String>().unwrap(), "served");
}

fn what_an_agent_reports_is_in_the_error(host: &Host) {
    let error = start(host, "refuse", json!(null)).result::<Value>(Duration::ZERO).unwrap_err();
    assert_eq!(error.to_string(), "refuse agent: no such luck");
    let error = start(host, "refuse", json!(null)).address().unwrap_err();
    assert_eq!(error.to_string(), "refuse agent: no such luck", "before it is ready, too");
}

fn how_an_agent_ended_is_in_the_error(host: &Host) {
    let error = start(host, "panic", json!(null)).result::<Value>(Duration::ZERO).unwrap_err();
    let error = error.to_string();
    assert!(error.starts_with("panic agent: ") && error.contains("panicked"), "{error}");
    if let Host::Processes(_) = host {
        assert!(error.contains("101") && error.contains("should never happen"), "{error}");
    }
}

fn a_result_of_another_kind_is_an_error(host: &Host) {
    let error = start(host, "double", json!(1)).result::<String>(Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("double agent: an unexpected result"), "{error}");
}

fn an_agent_that_is_dropped_ends(host: &Host) {
    let mut agent = start(host, "serve", json!(null));
    agent.address().unwrap();
    drop(agent); // Waits for its end; this test would hang if there were none.
}

/// Far too short to measure anything: every contender of every experiment completes messages when its
/// sides are apart, whichever way they wait. In threads the tests `bench` and `demo` show it.
fn every_experiment_comes_to_its_result(host: &Host) {
    let Host::Processes(_) = host else { return };
    for experiment in EXPERIMENTS {
        let defaults = (experiment.defaults)();
        for poll in [defaults.poll, Poll::Hybrid(Poll::DEFAULT_SPIN)] {
            // Not `udp-gso`: what its socket gets while its thread may not run is lost, on a busy
            // machine all of it.
            let only = match experiment.name {
                "throughput" => vec!["apus".to_owned(), "tcp".to_owned()],
                _ => Vec::new(),
            };
            let options = Options { seconds: 0.05, runs: 1, poll, only, ..defaults.clone() };
            let outcome = experiment.run(&options, host).unwrap();
            let json: Value = serde_json::from_str(&outcome.json()).expect("one JSON object");
            assert_eq!(json["experiment"], experiment.name);
            for row in json["rows"].as_array().unwrap() {
                for (figure, value) in row.as_object().unwrap() {
                    assert!(figure == "name" || value.as_f64().is_some(), "{figure} of {row}");
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

fn the_demo_comes_to_its_result(host: &Host) {
    let Host::Processes(_) = host else { return };
    let options =
        demo::Options { seconds: 0.05, runs: 1, rate: Some(500.0), ..demo::Options::default() };
    let findings = demo::run(&options, host).unwrap();
    let json: Value = serde_json::from_str(&findings.outcome.json()).expect("one JSON object");
    let rows = json["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["name"]), (3, &json!("apus")));
    for row in rows {
        assert!(row["messages"].as_u64().unwrap() > 0 && row["errors"] == 0, "{row}");
    }
}

/// A parent that dies cannot say "stop": all its child sees is the end of its input.
fn an_agent_ends_with_its_parent(host: &Host) {
    let Host::Processes(program) = host else { return };
    let mut child = Command::new(program)
        .arg(AGENT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let task = json!({"task": {"name": "orphan", "core": null, "job": "serve", "details": null}});
    writeln!(input, "{task}").unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.contains("ready"), "{ready}");
    drop(input);
    assert!(!child.wait().unwrap().success());
}

/// A test and its name.
macro_rules! tests {
    ($($name:ident),* $(,)?) => { [$((stringify!($name), $name as fn(&Host))),*] };
}

fn main() -> ExitCode {
    if env::args().nth(1).as_deref() == Some(AGENT) {
        return agent_main(work);
    }
    let filter = env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let tests = tests![
        a_result_reaches_the_parent,
        a_server_is_ready_and_stops_when_told,
        what_an_agent_reports_is_in_the_error,
        how_an_agent_ended_is_in_the_error,
        a_result_of_another_kind_is_an_error,
        an_agent_that_is_dropped_ends,
        an_agent_ends_with_its_parent,
        every_experiment_comes_to_its_result,
        the_demo_comes_to_its_result,
    ];
    let hosts = [
        ("processes", Host::this_program().expect("a program knows its file")),
        ("threads", Host::Threads(work)),
    ];
    for (name, test) in tests {
        for (place, host) in &hosts {
            let name = format!("{place}::{name}");
            if filter.as_ref().is_none_or(|part| name.contains(part.as_str())) {
                test(host);
                println!("test {name} ... ok");
            }
        }
    }
    ExitCode::SUCCESS
}
