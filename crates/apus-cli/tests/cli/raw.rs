//! Situation: messages go over raw IP, as to hosts with the kernel's Homa. Between processes on hosts that are namespaces;
//! what this machine does not allow or lacks is said, and passes.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::fabric::World;
use crate::service::{object, run, text};

const PROGRAM: &str = env!("CARGO_BIN_EXE_apus");

/// A service on the host h2. It is ended with the test.
struct Service(Child);

impl Service {
    /// Starts one; `None` if this machine allows no raw sockets.
    fn start(world: &World) -> Option<Self> {
        let mut child = world
            .fabric(&format!("exec h2 -- {PROGRAM} serve 10.77.0.2:4000 --driver raw"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.is_empty() {
            let said = text(&child.wait_with_output().unwrap().stderr);
            assert!(said.contains("CAP_NET_RAW"), "{said}");
            eprintln!("SKIPPED: {said}");
            return None;
        }
        assert_eq!(line, "listening on 10.77.0.2:4000\n");
        Some(Self(child))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.0.id().cast_signed()) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

/// `apus call` on the host h1.
fn call(world: &World, more: &str) -> Command {
    let mut command = world
        .fabric(&format!("exec h1 -- {PROGRAM} call 10.77.0.2:4000 --driver raw --json {more}"));
    command.stdout(Stdio::piped());
    command
}

/// Whether all `count` calls came back as they were sent.
fn assert_identical(result: &Value, count: u64) {
    let row = &result["rows"][0];
    assert_eq!(
        (row["failed"].as_u64(), row["identical"].as_u64()),
        (Some(0), Some(count)),
        "{row}"
    );
}

#[test]
fn processes_on_two_hosts_exchange_messages_of_all_sizes() {
    let world = World::new();
    if world.up("--nodes 2").is_none() {
        return;
    }
    let Some(_service) = Service::start(&world) else { return };
    for size in [1, 1424, 40_001, 1_000_000] {
        let output = call(&world, &format!("--size {size} --count 3")).output().unwrap();
        assert_identical(&object(&output), 3);
    }
    // Twenty processes of one host at a time, each with a port and ids of its own.
    let calls = |number: usize| {
        let size = [100, 1000, 10_000, 50_000][number % 4];
        call(&world, &format!("--size {size} --count 10")).spawn().unwrap()
    };
    let processes: Vec<Child> = (0..20).map(calls).collect();
    for process in processes {
        assert_identical(&object(&process.wait_with_output().unwrap()), 10);
    }
}

#[test]
fn a_message_that_the_kernel_would_not_take_is_a_wrong_argument() {
    let output = run("call 127.0.0.1:4000 --driver raw --size 1000001".split(' '));
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("'--size'") && said.contains("try 1000000"), "{said}");
}

/// Exit status 1, and what to do.
#[test]
fn without_the_capability_the_program_says_how_to_get_it() {
    let without = ["--bounding-set=-net_raw", "--inh-caps=-net_raw", PROGRAM];
    for arguments in ["serve 127.0.0.1:0 --driver raw", "call 127.0.0.1:4000 --driver raw"] {
        // An ordinary user lacks it anyway.
        let root = rustix::process::geteuid().is_root();
        let mut command = Command::new(if root { "setpriv" } else { PROGRAM });
        if root {
            command.args(without);
        }
        let Ok(output) = command.args(arguments.split(' ')).output() else {
            eprintln!("SKIPPED: it needs setpriv to give the capability up");
            return;
        };
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("`sudo setcap cap_net_raw+ep ") && said.contains("/apus`"), "{said}");
        assert!(!said.contains("any free port"), "that would not help: {said}");
    }
}

/// The other contenders go as ever; where there are no raw sockets the experiment says so.
#[test]
fn a_benchmark_measures_apus_over_raw_ip() {
    let output =
        run("bench rtt --driver raw --only apus --seconds 0.05 --runs 1 --json".split(' '));
    let said = text(&output.stderr);
    if !output.status.success() && said.contains("CAP_NET_RAW") {
        eprintln!("SKIPPED: {said}");
        return;
    }
    let result = object(&output);
    assert_eq!(result["config"]["driver"], "raw");
    assert!(result["rows"][0]["samples"].as_u64().unwrap() > 0, "{result}");
}
