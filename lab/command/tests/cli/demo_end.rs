//! Interrupted `apus-lab demo`: no process, namespace or link remains, however it ends.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::demo::World;
use crate::harness::text;

/// Environment variable that marks all processes of a demo, including processes whose parent has
/// ended.
const MARK: &str = "APUS_TEST_DEMO";

/// Argument of the processes that run the sides of the experiment.
const AGENT: &str = "__agent";

/// A running demo, and the mark of its processes.
struct Demo {
    child: Child,
    mark: String,
}

/// A process of the demo.
struct Process {
    namespace: String,
    is_agent: bool,
}

impl Demo {
    /// Starts a long demo as the leader of a process group, as a shell does.
    fn start(mut command: Command, mark: &str) -> Self {
        let child = command
            .args(["demo", "--no-html", "--seconds", "600"])
            .env(MARK, mark)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { child, mark: mark.to_owned() }
    }

    /// Returns its processes that have not ended.
    fn processes(&self) -> Vec<Process> {
        let mark = format!("{MARK}={}", self.mark);
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let process = |pid: u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
            let is_marked = environment.split(|byte| *byte == 0).any(|it| it == mark.as_bytes());
            // Neither can be read once it has ended.
            let namespace = fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let mut arguments = arguments.split(|byte| *byte == 0);
            // `nsenter` has the agent's arguments before it enters the network and becomes the
            // agent.
            let enters = arguments.next().is_some_and(|it| it.ends_with(b"nsenter"));
            let is_agent = !enters && arguments.any(|it| it == AGENT.as_bytes());
            let namespace = namespace.to_string_lossy().into_owned();
            is_marked.then_some(Process { namespace, is_agent })
        };
        pids.filter_map(process).collect()
    }

    /// Waits until agents run in the demo's network, and returns its namespaces; `None`, with a
    /// message, if this machine does not allow a network.
    fn namespaces(&mut self) -> Option<BTreeSet<String>> {
        let own = fs::read_link("/proc/self/ns/net").unwrap().to_string_lossy().into_owned();
        loop {
            if let Some(said) = self.fell_back() {
                eprintln!("SKIPPED: {said}");
                return None;
            }
            let processes = self.processes();
            let inside = processes.iter().filter(|process| process.namespace != own);
            let agents = inside.clone().filter(|process| process.is_agent).count();
            let namespaces: BTreeSet<_> = inside.map(|process| process.namespace.clone()).collect();
            if namespaces.len() == 5 && agents >= 2 {
                return Some(namespaces);
            }
            thread::yield_now();
        }
    }

    /// Returns the demo's output if it has ended or fallen back to simulation.
    fn fell_back(&mut self) -> Option<String> {
        let simulates =
            self.processes().iter().any(|process| process.is_agent && process.simulates());
        if simulates {
            self.child.kill().unwrap();
        }
        let ended = simulates || self.child.try_wait().unwrap().is_some();
        ended.then(|| {
            let mut said = Vec::new();
            std::io::Read::read_to_end(self.child.stderr.as_mut().unwrap(), &mut said).unwrap();
            text(&said)
        })
    }
}

impl Process {
    /// Returns whether the agent is outside any network built by the demo.
    fn simulates(&self) -> bool {
        fs::read_link("/proc/self/ns/net").is_ok_and(|own| own.to_string_lossy() == self.namespace)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Both fail only if it has been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the namespaces of all processes that this user can see. An exiting process no longer has
/// memory, and so no arguments; it leaves its namespace a moment later.
fn visible_namespaces() -> BTreeSet<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let links = processes.filter_map(|entry| {
        let link = fs::read_link(entry.path().join("ns/net")).ok()?;
        let arguments = fs::read(entry.path().join("cmdline")).ok()?;
        (!arguments.is_empty()).then(|| link.to_string_lossy().into_owned())
    });
    links.collect()
}

/// Returns the interfaces of this namespace, and the named namespaces.
fn surroundings() -> (Vec<String>, Vec<String>) {
    let table = fs::read_to_string("/proc/self/net/dev").unwrap();
    let interfaces =
        table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
    let named = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let named = named.map(|entry| entry.file_name().to_string_lossy().into_owned());
    (interfaces.collect(), named.collect())
}

/// Returns whether this process and its children ignore Ctrl-C: a shell starts background commands
/// this way.
fn ignores_interrupts() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    ignored & (1 << (Signal::INT.as_raw() - 1)) != 0
}

/// Ctrl-C reaches all processes of the group, other signals only the command; the last signal
/// cannot be caught.
#[test]
fn nothing_remains_of_a_demo_that_is_interrupted() {
    let world = World::new();
    let before = surroundings();
    let users =
        [("caller", World::as_caller as fn(&World) -> Command), ("user", World::as_ordinary_user)];
    for (user, command) in users {
        for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
            if signal == Signal::INT && ignores_interrupts() {
                eprintln!("SKIPPED: Ctrl-C is ignored in the background");
                continue;
            }
            let mark = format!("{user}-{signal:?}-{}", std::process::id());
            let mut demo = Demo::start(command(&world), &mark);
            let Some(namespaces) = demo.namespaces() else { return };
            assert!(visible_namespaces().is_superset(&namespaces));
            let pid = Pid::from_child(&demo.child);
            let sent = if signal == Signal::INT {
                kill_process_group(pid, signal)
            } else {
                kill_process(pid, signal)
            };
            sent.unwrap();
            demo.child.wait().unwrap();
            // Children of a killed process end a moment later.
            while !demo.processes().is_empty() {
                thread::yield_now();
            }
            assert!(visible_namespaces().is_disjoint(&namespaces), "{user}, {signal:?}");
        }
    }
    assert_eq!(surroundings(), before);
}
