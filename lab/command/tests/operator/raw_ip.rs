//! Messages over raw IP, as used with the kernel's Homa, between hosts in namespaces. Without
//! permission for namespaces or raw sockets, a test prints a message and passes.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{object, program, text};
use crate::hosts::Hosts;

/// A service on the host h2. It ends with the test.
struct Service(Child);

impl Service {
    /// Starts a service. Returns `None`, with a message, if this machine does not allow raw
    /// sockets.
    fn start(hosts: &Hosts, program: &Path) -> Option<Self> {
        let program = program.display();
        let mut child = hosts
            .command(1, &format!("{program} serve 10.77.0.2:4000 --driver raw"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.is_empty() {
            let stderr = text(&child.wait_with_output().unwrap().stderr);
            assert!(stderr.contains("CAP_NET_RAW"), "{stderr}");
            eprintln!("SKIPPED: {stderr}");
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

/// Returns `apus call` on the host h1.
fn call(hosts: &Hosts, program: &Path, more: &str) -> Command {
    let program = program.display();
    let mut command =
        hosts.command(0, &format!("{program} call 10.77.0.2:4000 --driver raw --json {more}"));
    command.stdout(Stdio::piped());
    command
}

/// Asserts that all `count` replies are identical to their requests.
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
    let Some(program) = program() else { return };
    let Some(hosts) = Hosts::up() else { return };
    let Some(_service) = Service::start(&hosts, &program) else { return };
    for size in [1, 1424, 40_001, 1_000_000] {
        let output = call(&hosts, &program, &format!("--size {size} --count 3")).output().unwrap();
        assert_identical(&object(&output), 3);
    }
    // Twenty processes of one host at the same time, each with its own port and ids.
    let calls = |number: usize| {
        let size = [100, 1000, 10_000, 50_000][number % 4];
        call(&hosts, &program, &format!("--size {size} --count 10")).spawn().unwrap()
    };
    let processes: Vec<Child> = (0..20).map(calls).collect();
    for process in processes {
        assert_identical(&object(&process.wait_with_output().unwrap()), 10);
    }
}
