//! Scenario: the sides of an experiment run in separate processes. The experiment returns its
//! result. If a process fails, no process remains, and the failure reaches the parent.

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use apus_measure::Error;
use apus_measure::clock;
use apus_measure::process::{
    AGENT, Agent, Begin, Control, Crew, Results, Spawner, Task, agent_main,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Runs an agent of these tests.
fn work(task: &Task, control: &mut Control) -> Result<Value, Error> {
    match task.job.as_str() {
        "double" => Ok(json!(task.details.as_u64().expect("a number") * 2)),
        "serve" => {
            let (wakes, woken) = std::sync::mpsc::channel();
            // A second call finds no receiver.
            control.stop().wake_with(move || {
                let _ = wakes.send(());
            });
            control.ready(([127, 0, 0, 1], 7).into())?;
            woken.recv().expect("the sender lives as long as the control");
            Ok(json!("served"))
        }
        "ring" => ring(task, control),
        "longest pause" => {
            // The parent may pause the agent as soon as it is ready.
            let (mut last, mut longest) = (clock::now(), 0);
            control.ready(([127, 0, 0, 1], 7).into())?;
            loop {
                let is_last = control.stop().is_asked();
                let now = clock::now();
                longest = longest.max(now - last);
                last = now;
                if is_last {
                    return Ok(json!(longest));
                }
            }
        }
        "end with parent" => {
            control.end_with_parent()?;
            control.ready(([127, 0, 0, 1], 7).into())?;
            control.stop().wait();
            Ok(Value::Null)
        }
        "die" => std::process::exit(3),
        "die later" => {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            control.ready(listener.local_addr().expect("bound above")).expect("a parent");
            control.begin::<Value>()?;
            let _peer = listener.accept();
            std::process::exit(3)
        }
        "lose peer" => {
            control.ready(([127, 0, 0, 1], 7).into())?;
            let Begin { details: other, .. } = control.begin::<SocketAddr>()?;
            let mut other = TcpStream::connect(other).expect("it listens");
            let heard =
                other.read(&mut [0]).map_or_else(|error| error.to_string(), |n| n.to_string());
            Err(Error::Peer(format!("my peer is gone ({heard})")))
        }
        "prepare" => {
            control.ready(([127, 0, 0, 1], 7).into())?;
            let number: u64 = control.prepare()?;
            let prepared = clock::now();
            control.prepared()?;
            let Begin { details: (), at } = control.begin()?;
            Ok(json!({ "number": number, "prepared": prepared, "at": at }))
        }
        "refuse" => Err(Error::Peer("no such luck".to_owned())),
        "panic" => panic!("something that should never happen"),
        other => Err(Error::Peer(format!("no job is named `{other}`"))),
    }
}

/// Runs one agent of a ring: sends its number to the next agent, and reports the number of the
/// previous agent and the time when it could start.
fn ring(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let system = |error: std::io::Error| Error::Peer(error.to_string());
    let listener = TcpListener::bind("127.0.0.1:0").map_err(system)?;
    control.ready(listener.local_addr().map_err(system)?)?;
    let Begin { details: next, at } = control.begin::<SocketAddr>()?;
    while clock::now() < at {
        thread::yield_now();
    }
    let began = clock::now();
    let number = u8::try_from(task.details.as_u64().expect("a number")).expect("a small one");
    TcpStream::connect(next).and_then(|mut next| next.write_all(&[number])).map_err(system)?;
    let mut heard = [0];
    listener.accept().and_then(|(mut from, _)| from.read_exact(&mut heard)).map_err(system)?;
    Ok(json!({"heard": heard[0], "at": at, "began": began}))
}

fn task(job: &str, details: Value) -> Task {
    Task { name: format!("{job} agent"), core: None, bind: None, job: job.to_owned(), details }
}

fn start(host: &Spawner, job: &str, details: Value) -> Agent {
    host.start(task(job, details)).expect("this program can be started again")
}

fn crew(host: &Spawner, jobs: &[&str]) -> Crew {
    let task = |(number, job): (usize, &&str)| {
        let task = task(job, json!(number));
        (host.clone(), Task { name: format!("{} {number}", task.name), ..task })
    };
    Crew::start(jobs.iter().enumerate().map(task)).expect("this program can be started again")
}

fn a_result_reaches_the_parent(host: &Spawner) {
    let agent = start(host, "double", json!(21));
    assert_eq!(agent.result::<u64>(Duration::ZERO).unwrap(), 42);
}

fn a_server_is_ready_and_stops_on_request(host: &Spawner) {
    let mut agent = start(host, "serve", json!(null));
    assert_eq!(agent.address().unwrap(), ([127, 0, 0, 1], 7).into());
    assert_eq!(agent.stop::<String>().unwrap(), "served");
}

fn what_an_agent_reports_is_in_the_error(host: &Spawner) {
    let error = start(host, "refuse", json!(null)).result::<Value>(Duration::ZERO).unwrap_err();
    assert_eq!(error.to_string(), "refuse agent: no such luck");
    let error = start(host, "refuse", json!(null)).address().unwrap_err();
    assert_eq!(error.to_string(), "refuse agent: no such luck", "before it is ready, too");
}

fn how_an_agent_ended_is_in_the_error(host: &Spawner) {
    let error = start(host, "panic", json!(null)).result::<Value>(Duration::ZERO).unwrap_err();
    let error = error.to_string();
    assert!(error.starts_with("panic agent: ") && error.contains("panicked"), "{error}");
    if let Spawner::Processes(_) = host {
        assert!(error.contains("101") && error.contains("should never happen"), "{error}");
    }
}

fn a_result_of_another_kind_is_an_error(host: &Spawner) {
    let error = start(host, "double", json!(1)).result::<String>(Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("double agent: an unexpected result"), "{error}");
}

fn an_agent_that_is_dropped_ends(host: &Spawner) {
    let mut agent = start(host, "serve", json!(null));
    agent.address().unwrap();
    drop(agent); // Waits for its end; this test would hang otherwise.
}

fn a_crew_begins_together_and_knows_its_peers(host: &Spawner) {
    let mut crew = crew(host, &["ring"; 4]);
    let mut next = crew.addresses().unwrap();
    next.rotate_left(1);
    let at = crew.begin(&next, Duration::from_millis(200)).unwrap();
    let clocks = crew.clocks().to_vec();
    let results = crew.results::<Value>(Duration::ZERO).all().unwrap();
    let heard: Vec<_> = results.iter().map(|result| result["heard"].as_u64().unwrap()).collect();
    assert_eq!(heard, [3, 0, 1, 2]);
    for (result, clock) in results.iter().zip(clocks) {
        let instant = |name: &str| clock.to_parent(result[name].as_u64().unwrap());
        assert_eq!(instant("at"), at, "translated there and back");
        assert!(instant("began") >= at);
        // All run on this host: the true offset is 0, within the bound of the estimate.
        assert!(clock.to_agent(at).abs_diff(at) <= clock.error(), "{clock:?}");
    }
}

fn a_crew_begins_when_all_have_prepared(host: &Spawner) {
    let mut ready = crew(host, &["prepare"; 3]);
    ready.addresses().unwrap();
    ready.prepare(&[7, 8, 9], Duration::ZERO).unwrap();
    let at = ready.begin(&[(); 3], Duration::ZERO).unwrap();
    let clocks = ready.clocks().to_vec();
    let results = ready.results::<Value>(Duration::ZERO).all().unwrap();
    let number = |name: &str, result: &Value| result[name].as_u64().unwrap();
    let numbers: Vec<u64> = results.iter().map(|result| number("number", result)).collect();
    assert_eq!(numbers, [7, 8, 9]);
    for (result, clock) in results.iter().zip(clocks) {
        assert_eq!(clock.to_parent(number("at", result)), at);
        assert!(number("prepared", result) <= at, "all run on this host: {result}");
    }
    let mut busy = crew(host, &["prepare", "double"]);
    let error = busy.prepare(&[1, 2], Duration::ZERO).unwrap_err().to_string();
    assert_eq!(error, "double agent 1: done before it was prepared");
    let mut agent = start(host, "prepare", Value::Null);
    agent.address().unwrap();
    let error = agent.stop::<Value>().unwrap_err().to_string();
    assert_eq!(error, "prepare agent: stopped before it could begin");
}

fn an_agent_reads_its_clock_while_it_works(host: &Spawner) {
    let mut agent = start(host, "serve", json!(null));
    agent.address().unwrap();
    let clock = agent.compare_clocks().unwrap();
    assert!(clock.error() > 0 && clock.to_agent(0).max(clock.to_parent(0)) <= clock.error());
    agent.stop::<String>().unwrap();
}

fn a_stop_ends_the_wait_for_the_start(host: &Spawner) {
    let mut agent = start(host, "ring", json!(1));
    agent.address().unwrap();
    let error = agent.stop::<Value>().unwrap_err().to_string();
    assert_eq!(error, "ring agent: stopped before it could begin");
}

fn the_first_failure_is_the_crews(host: &Spawner) {
    // The ring waits for a peer that never connects; the crew does not wait for the ring.
    let error = crew(host, &["ring", "refuse", "ring"]).addresses().unwrap_err();
    assert_eq!(error.to_string(), "refuse agent 1: no such luck");
    let error = crew(host, &["ring", "double"]).addresses().unwrap_err();
    assert_eq!(error.to_string(), "double agent 1: done before it was ready");
}

fn reports_of_the_others_are_kept(host: &Spawner) {
    let Results { each, failure } =
        crew(host, &["double", "refuse", "serve"]).results::<Value>(Duration::ZERO);
    assert_eq!(failure.unwrap().to_string(), "refuse agent 1: no such luck");
    assert_eq!((&each[1], &each[2]), (&None, &Some(json!("served"))));
}

fn an_agent_that_dies_in_mid_run_is_named(host: &Spawner) {
    let Spawner::Processes(_) = host else { return };
    let Results { each, failure } = crew(host, &["serve", "die"]).results::<Value>(Duration::ZERO);
    assert_eq!(failure.unwrap().to_string(), "die agent 1: exit status: 3");
    assert_eq!(each, [Some(json!("served")), None]);
}

fn an_agent_that_died_is_named_and_not_one_that_lost_its_peer(host: &Spawner) {
    let Spawner::Processes(_) = host else { return };
    let mut crew = crew(host, &["lose peer", "die later"]);
    let other = crew.addresses().unwrap()[1];
    crew.begin(&[json!(other), Value::Null], Duration::ZERO).unwrap();
    // The failure is reported at once.
    let error = crew.sleep(Duration::from_secs(3600)).unwrap_err().to_string();
    assert_eq!(error, "die later agent 1: exit status: 3");
}

fn an_agent_that_the_crew_kills_is_no_failure(host: &Spawner) {
    let Spawner::Processes(_) = host else {
        let refused = crew(host, &["serve", "serve"]).kill(0).unwrap_err().to_string();
        assert_eq!(refused, "send \"Signal::KILL\" to serve agent 0: unsupported");
        return;
    };
    let mut crew = crew(host, &["serve", "serve"]);
    crew.addresses().unwrap();
    crew.kill(0).unwrap();
    crew.sleep(Duration::from_millis(1)).unwrap();
    crew.stop().unwrap();
    let Results { each, failure } = crew.results::<Value>(Duration::ZERO);
    assert!(failure.is_none(), "{failure:?}");
    assert_eq!(each, [None, Some(json!("served"))]);
}

fn sleep_lasts_while_the_crew_runs(host: &Spawner) {
    let mut crew = crew(host, &["serve", "double"]);
    crew.sleep(Duration::from_millis(1)).unwrap();
    crew.stop().unwrap();
    let each = crew.results::<Value>(Duration::ZERO).all().unwrap();
    assert_eq!(each, [json!("served"), json!(2)]);
}

fn another_command_may_start_the_agents(host: &Spawner) {
    let Spawner::Processes(program) = host else { return };
    let through = |words: &[&str]| Spawner::Command {
        prefix: words.iter().map(Into::into).collect(),
        program: program.into(),
    };
    let host = through(&["env", "APUS_TEST=1"]);
    a_result_reaches_the_parent(&host);
    an_agent_that_is_dropped_ends(&host);
    let missing = through(&["/nowhere/at/all"]).start(task("double", json!(1)));
    let error = missing.err().unwrap().to_string();
    assert!(error.starts_with("start double agent: "), "{error}");
    // A shell that prints a greeting: the unexpected line is shown.
    let host = through(&["sh", "-c", "echo Welcome!; exec \"$0\" \"$1\""]);
    let error = start(&host, "double", json!(1)).result::<u64>(Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("sent an unexpected line: `Welcome!`"), "{error}");
}

/// A parent that dies cannot send "stop": its child only reads the end of its input.
fn an_agent_ends_with_its_parent(host: &Spawner) {
    let Spawner::Processes(program) = host else { return };
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

fn a_paused_agent_does_nothing_until_it_resumes(host: &Spawner) {
    const PAUSE: Duration = Duration::from_millis(50);
    let mut agent = start(host, "longest pause", Value::Null);
    agent.address().unwrap();
    if matches!(host, Spawner::Threads(_)) {
        let error = agent.pause().unwrap_err().to_string();
        assert!(error.contains("longest pause agent"), "{error}");
        return;
    }
    agent.pause().unwrap();
    agent.sleep(PAUSE).unwrap();
    agent.resume().unwrap();
    assert!(agent.stop::<u64>().unwrap() >= clock::as_nanoseconds(PAUSE));
}

fn a_paused_agent_that_is_dropped_ends(host: &Spawner) {
    let Spawner::Processes(_) = host else { return };
    let mut agent = start(host, "longest pause", Value::Null);
    agent.address().unwrap();
    agent.pause().unwrap();
    drop(agent);
}

/// The input stays open: only the thread that started the agent ends.
fn a_paused_agent_ends_with_its_parent(host: &Spawner) {
    let Spawner::Processes(program) = host else { return };
    let (_input, mut child) =
        thread::scope(|scope| scope.spawn(|| start_and_pause(program)).join().unwrap());
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
}

/// Starts an agent that ends with this thread, and pauses it.
fn start_and_pause(program: &Path) -> (Option<ChildStdin>, Child) {
    let mut command = Command::new(program);
    command.arg(AGENT).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take();
    let task = json!({"name": "orphan", "core": null, "job": "end with parent", "details": null});
    writeln!(input.as_mut().unwrap(), "{}", json!({ "task": task })).unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.contains("ready"), "{ready}");
    kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
    (input, child)
}

/// A test and its name.
macro_rules! tests {
    ($($name:ident),* $(,)?) => { [$((stringify!($name), $name as fn(&Spawner))),*] };
}

fn main() -> ExitCode {
    if env::args().nth(1).as_deref() == Some(AGENT) {
        return agent_main(work);
    }
    let filter = env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let tests = tests![
        a_result_reaches_the_parent,
        a_server_is_ready_and_stops_on_request,
        what_an_agent_reports_is_in_the_error,
        how_an_agent_ended_is_in_the_error,
        a_result_of_another_kind_is_an_error,
        an_agent_that_is_dropped_ends,
        an_agent_ends_with_its_parent,
        a_paused_agent_does_nothing_until_it_resumes,
        a_paused_agent_that_is_dropped_ends,
        a_paused_agent_ends_with_its_parent,
        an_agent_reads_its_clock_while_it_works,
        a_stop_ends_the_wait_for_the_start,
        a_crew_begins_together_and_knows_its_peers,
        a_crew_begins_when_all_have_prepared,
        the_first_failure_is_the_crews,
        reports_of_the_others_are_kept,
        an_agent_that_dies_in_mid_run_is_named,
        an_agent_that_died_is_named_and_not_one_that_lost_its_peer,
        an_agent_that_the_crew_kills_is_no_failure,
        sleep_lasts_while_the_crew_runs,
        another_command_may_start_the_agents,
    ];
    let hosts = [
        ("processes", Spawner::this_program().expect("a program knows its file")),
        ("threads", Spawner::Threads(work)),
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
