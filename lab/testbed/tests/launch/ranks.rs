//! Ranks find each other regardless of the program that starts them, and unknown connections do not
//! disturb them.

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use apus_testbed::launch::{Coordinator, Launch, Ranks, Role};
use apus_testbed::process::Results;
use serde_json::{Value, json};

use crate::RANK;
use crate::cluster::{ring, start};

const TOKEN: &str = "what only this job knows";

fn this() -> PathBuf {
    env::current_exe().expect("a program knows its file")
}

fn ranks(rank: u32, size: u32, port: u16) -> Ranks {
    let coordinator = Ipv4Addr::LOCALHOST.to_string();
    let timeout = Duration::from_secs(300);
    Ranks { rank, size, coordinator, port, token: TOKEN.to_owned(), bind: None, timeout }
}

/// Returns rank 0 and its listening port.
fn coordinator(ranks: Ranks) -> (Coordinator, u16) {
    let Role::Coordinator(coordinator) = ranks.join(this()).unwrap() else { panic!("rank 0") };
    let port = coordinator.address().map_or(0, |address| address.port());
    (coordinator, port)
}

/// Another rank, started as a launcher starts it.
struct Rank(Child);

impl Rank {
    fn start(rank: u32, size: u32, port: u16, token: &str) -> Self {
        let mut command = Command::new(this());
        command.arg(RANK).stdin(Stdio::null()).stderr(Stdio::piped());
        command.env("APUS_RANK", rank.to_string()).env("APUS_NODES", size.to_string());
        command.env("APUS_COORDINATOR", format!("127.0.0.1:{port}")).env("APUS_TOKEN", token);
        Self(command.spawn().unwrap())
    }

    /// Waits for its exit; returns whether it succeeded, and its standard error output.
    fn end(&mut self) -> (bool, String) {
        let mut said = String::new();
        self.0.stderr.take().expect("piped").read_to_string(&mut said).unwrap();
        (self.0.wait().unwrap().success(), said)
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        // Both fail only if it has been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a job of `size` ranks.
fn job(size: u32) -> (Launch, Vec<Rank>) {
    let (coordinator, port) = coordinator(ranks(0, size, 0));
    let others = (1..size).map(|rank| Rank::start(rank, size, port, TOKEN)).collect();
    (Launch::Ranks(coordinator), others)
}

pub(crate) fn find_each_other_twice_with_new_agents() {
    let (launch, mut others) = job(3);
    let (first, second) = (ring(&launch), ring(&launch));
    for met in &second {
        assert!(first.iter().all(|other| other.pid != met.pid), "the same process again");
    }
    let Launch::Ranks(coordinator) = &launch else { unreachable!() };
    assert_eq!(coordinator.joined(), 3);
    drop(launch);
    for rank in &mut others {
        assert_eq!(rank.end(), (true, String::new()), "dismissed");
    }
}

pub(crate) fn may_be_one() {
    let (coordinator, _) = coordinator(ranks(0, 1, 0));
    assert_eq!(coordinator.address(), None, "no other rank");
    assert_eq!(ring(&Launch::Ranks(coordinator)).len(), 1);
}

pub(crate) fn are_not_disturbed_by_unknown_connections() {
    let (coordinator, port) = coordinator(ranks(0, 2, 0));
    let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    // Silent connections that stay open.
    let silent: Vec<_> = (0..100).map(|_| connect()).collect();
    // Input that is not a hello, is far too long, or only has the right format.
    let hello = json!({"version": env!("CARGO_PKG_VERSION"), "token": "guessed", "rank": 1, "size": 2,
        "bind": "127.0.0.1", "host": "evil"});
    let endless = "x".repeat(100_000);
    for words in ["GET / HTTP/1.1\r\n\r\n", &endless, "\0\n", "{}\n", &format!("{hello}\n")] {
        let mut unknown = connect();
        // The connection may be closed before all is written.
        let _ = unknown.write_all(words.as_bytes());
        let mut answer = Vec::new();
        let _ = unknown.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.is_empty() || answer.contains("token"), "{answer}");
    }
    drop(connect());
    let mut rank = Rank::start(1, 2, port, TOKEN);
    let launch = Launch::Ranks(coordinator);
    ring(&launch);
    drop(launch);
    assert!(rank.end().0);
    drop(silent);
}

pub(crate) fn of_another_job_are_refused_with_a_reason() {
    let (coordinator, port) = coordinator(ranks(0, 3, 0));
    let refused = |rank: u32, size: u32, token: &str| {
        let (success, said) = Rank::start(rank, size, port, token).end();
        assert!(
            !success && said.contains(&format!("rank 0 at 127.0.0.1:{port}: refused")),
            "{said}"
        );
        said
    };
    assert!(refused(1, 3, "another").contains("APUS_TOKEN"));
    assert!(refused(1, 4, TOKEN).contains("rank 1 of 4"));
    assert!(refused(3, 5, TOKEN).contains("rank 0 of 3"));
    let first = ranks(1, 3, port).join(this()).unwrap();
    assert!(refused(1, 3, TOKEN).contains("there is a rank 1 already"));
    // A rank that disconnects while it waits leaves its place free.
    drop(first);
    let launch = Launch::Ranks(coordinator);
    let others = [1, 2].map(|rank| Rank::start(rank, 3, port, TOKEN));
    ring(&launch);
    drop(launch);
    drop(others);
}

pub(crate) fn that_are_missing_are_named() {
    let impatient = Ranks { timeout: Duration::ZERO, ..ranks(0, 4, 0) };
    let (coordinator, port) = coordinator(impatient);
    let (_, said) = Rank::start(1, 4, port, "another").end();
    assert!(said.contains("token"), "{said}");
    let error = start(&Launch::Ranks(coordinator), &["ring"; 3]).err().unwrap().to_string();
    assert!(error.starts_with("rank 1, 2: not connected to 127.0.0.1:"), "{error}");
    assert!(error.contains("refused connections: 1, the last from 127.0.0.1"), "{error}");
    // Rank 0 may be missing as well.
    let unused = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = unused.local_addr().unwrap().port();
    drop(unused);
    let lost = Ranks { timeout: Duration::ZERO, ..ranks(1, 4, port) };
    let error = lost.join(this()).unwrap_err().to_string();
    assert!(error.contains("does not answer rank 1 (Connection refused"), "{error}");
}

pub(crate) fn whose_agent_dies_are_named() {
    let (launch, _others) = job(3);
    let mut crew = start(&launch, &["wait", "wait", "die"]).unwrap();
    crew.addresses().unwrap();
    crew.begin(&[(); 3], Duration::ZERO).unwrap();
    let Results { each, failure } = crew.results::<u32>(Duration::ZERO);
    let failure = failure.unwrap().to_string();
    assert!(failure.starts_with("node 2 on "), "{failure}");
    assert!(failure.ends_with(" (rank 2): exit status: 3: the disk is full"), "{failure}");
    assert!(each[0].is_some() && each[1].is_some() && each[2].is_none(), "{each:?}");
    // No state is left over from that run.
    ring(&launch);
}

pub(crate) fn that_die_are_named() {
    let (launch, mut others) = job(2);
    let mut crew = start(&launch, &["wait", "wait"]).unwrap();
    crew.addresses().unwrap();
    others[0].0.kill().unwrap();
    let Results { each, failure } = crew.results::<u32>(Duration::ZERO);
    let failure = failure.unwrap().to_string();
    assert!(failure.contains("(rank 1): ") && failure.contains("connection"), "{failure}");
    assert!(each[0].is_some() && each[1].is_none(), "{each:?}");
}

pub(crate) fn end_when_rank_0_does() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut rank = Rank::start(1, 2, listener.local_addr().unwrap().port(), TOKEN);
    let (stream, _) = listener.accept().unwrap();
    let mut lines = BufReader::new(stream);
    let mut hello = String::new();
    lines.read_line(&mut hello).unwrap();
    let hello: Value = serde_json::from_str(&hello).unwrap();
    assert_eq!((&hello["rank"], &hello["token"]), (&json!(1), &json!(TOKEN)));
    let task = json!({"name": "orphan", "core": null, "job": "wait", "details": null});
    let stream = lines.get_mut();
    write!(stream, "\"welcome\"\n{}\n", json!({ "task": task })).unwrap();
    let mut ready = String::new();
    lines.read_line(&mut ready).unwrap();
    assert!(ready.contains("ready"), "{ready}");
    drop(listener);
    lines.get_mut().shutdown(Shutdown::Both).unwrap();
    let (success, said) = rank.end();
    assert!(!success && said.contains("does not answer"), "{said}");
}
