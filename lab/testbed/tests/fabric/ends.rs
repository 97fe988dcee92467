//! Removal of a fabric: no process and no namespace remains, however its owner exits.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use apus_testbed::fabric::{Fabric, IsolatedHost, Layout, Process, Spec};

use crate::programs::Running;
use crate::test;

/// Argument that makes this program the owner of a fabric until it is killed.
pub(crate) const OWNER: &str = "__owner";

pub(crate) fn all(who: &str) {
    test(who, "nothing stays", nothing_stays);
    test(who, "a program that goes on has no network", a_program_that_goes_on_has_no_network);
    test(who, "an owner that is killed leaves nothing", an_owner_that_is_killed_leaves_nothing);
    test(who, "what was there is not touched", what_was_there_is_not_touched);
    test(who, "one that fails half-way leaves nothing", one_that_fails_half_way_leaves_nothing);
    test(who, "an isolated host has loopback only", an_isolated_host_has_loopback_only);
}

pub(crate) fn spec() -> Spec {
    Spec { nodes: 3, ..Spec::default() }
}

/// Owns a fabric, prints its layout, and waits.
pub(crate) fn owner() -> ExitCode {
    let fabric = Fabric::up(&spec()).unwrap();
    println!("{}", serde_json::to_string(fabric.layout()).unwrap());
    let _ = io::stdin().read_to_end(&mut Vec::new());
    ExitCode::SUCCESS
}

/// Returns the network namespace of a process; `None` once it has exited.
fn namespace(pid: u32) -> Option<String> {
    let link = fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

/// Returns all namespaces that this user can see.
fn namespaces() -> BTreeSet<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(namespace).collect()
}

fn namespaces_of(layout: &Layout) -> BTreeSet<String> {
    let all: BTreeSet<_> = layout.holders().filter_map(|holder| namespace(holder.pid)).collect();
    assert_eq!(all.len(), 4, "a switch and three hosts, each in its own");
    assert!(!all.contains(&namespace(std::process::id()).unwrap()), "not this process's");
    all
}

fn nothing_stays() {
    let fabric = Fabric::up(&spec()).unwrap();
    let layout = fabric.layout().clone();
    let made = namespaces_of(&layout);
    assert!(layout.is_alive() && namespaces().is_superset(&made));
    drop(fabric);
    assert!(layout.holders().all(|holder| !holder.is_alive()));
    assert!(namespaces().is_disjoint(&made));
}

fn a_program_that_goes_on_has_no_network() {
    let fabric = Fabric::up(&spec()).unwrap();
    let mut echo = Running::start(&fabric, 0, &["echo", "0.0.0.0:0"]);
    echo.line();
    let interfaces = || fs::read_to_string(format!("/proc/{}/net/dev", echo.pid())).unwrap();
    assert!(interfaces().contains("fab0"));
    drop(fabric);
    // The kernel removes a namespace asynchronously.
    while interfaces().contains("fab0") {
        thread::yield_now();
    }
}

fn an_owner_that_is_killed_leaves_nothing() {
    let mut owner = Command::new(env::current_exe().unwrap())
        .arg(OWNER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(owner.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let layout: Layout = serde_json::from_str(&line).unwrap();
    let made = namespaces_of(&layout);
    assert!(layout.is_alive());
    // SIGKILL: no destructor runs.
    owner.kill().unwrap();
    owner.wait().unwrap();
    while layout.holders().any(Process::is_alive) {
        thread::yield_now();
    }
    assert!(namespaces().is_disjoint(&made));
}

fn what_was_there_is_not_touched() {
    let interfaces = || {
        let text = fs::read_to_string("/proc/self/net/dev").unwrap();
        let names =
            text.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.to_owned()));
        names.collect::<Vec<_>>()
    };
    let routes = || fs::read_to_string("/proc/self/net/route").unwrap();
    let before = (interfaces(), routes());
    let fabric = Fabric::up(&spec()).unwrap();
    assert_eq!((interfaces(), routes()), before);
    drop(fabric);
    assert_eq!((interfaces(), routes()), before);
}

/// The lack of netem shows only in the last step, when the rest of the fabric exists already.
fn one_that_fails_half_way_leaves_nothing() {
    let before = namespaces();
    let delay = std::time::Duration::from_micros(10);
    match Fabric::up(&Spec { delay, ..spec() }) {
        Ok(_) => eprintln!("SKIPPED: this kernel has netem, and nothing fails"),
        Err(error) => {
            let said = error.to_string();
            assert!(said.contains("netem") && said.contains("--delay"), "{said}");
        }
    }
    let others: BTreeSet<_> = namespaces().difference(&before).cloned().collect();
    let ours: BTreeSet<_> = children().into_iter().filter_map(namespace).collect();
    assert!(others.is_disjoint(&ours), "{ours:?}");
}

/// Returns the child processes of this process.
fn children() -> Vec<u32> {
    let me = std::process::id();
    let text = fs::read_to_string(format!("/proc/{me}/task/{me}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn an_isolated_host_has_loopback_only() {
    let host = IsolatedHost::up().unwrap();
    let enter = host.enter();
    let run = |script: &str| {
        let output =
            Command::new(&enter[0]).args(&enter[1..]).args(["sh", "-c", script]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let table = run("cat /proc/self/net/dev");
    let interfaces: Vec<&str> =
        table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim())).collect();
    // Some kernels create tunnel interfaces, which are down, in each namespace.
    assert!(interfaces.contains(&IsolatedHost::INTERFACE), "{table}");
    assert!(!interfaces.iter().any(|name| name.starts_with("eth")), "{table}");
    // The addresses of active interfaces have routes.
    assert!(run("cat /proc/self/net/fib_trie").contains("127.0.0.1"), "loopback is up");
    let inside = run("readlink /proc/self/ns/net");
    assert!(namespaces().contains(inside.trim()));
    drop(host);
    assert!(!namespaces().contains(inside.trim()), "it ends with its value");
}
