//! Persistent fabrics, which outlive the command that created them.

use std::env;
use std::thread;

use apus_testbed::fabric::persistent::{FabricName, Removal, down, find, names, up};
use apus_testbed::fabric::{FabricError, Process, Spec};
use serde_json::Value;

use crate::test;

/// Removes all fabrics that a failed assertion leaves.
struct CleanUp;

impl Drop for CleanUp {
    fn drop(&mut self) {
        for name in names().unwrap_or_default() {
            let _ = down(&name);
        }
    }
}

pub(crate) fn all(who: &str) {
    let _clean_up = CleanUp;
    test(who, "a persistent fabric is found and taken down", it_is_found_and_taken_down);
    test(who, "a name belongs to one fabric", a_name_belongs_to_one);
    test(who, "an owner that is killed leaves a file at most", an_owner_is_killed);
    test(who, "one that does not come up leaves nothing", one_that_does_not_come_up);
}

fn name(text: &str) -> FabricName {
    text.parse().unwrap()
}

fn make(text: &str) -> apus_testbed::fabric::Layout {
    up(&env::current_exe().unwrap(), &name(text), &Spec { nodes: 2, ..Spec::default() }).unwrap()
}

fn it_is_found_and_taken_down() {
    let layout = make("one");
    let other = make("other");
    assert_eq!(find(&name("one")).unwrap(), layout);
    assert_eq!(names().unwrap(), [name("one"), name("other")]);
    assert_eq!(down(&name("one")).unwrap(), Removal::Removed);
    assert!(layout.holders().all(|holder| !holder.is_alive()) && other.is_alive());
    assert_eq!(down(&name("one")).unwrap(), Removal::Absent, "a second time is no error");
    let error = find(&name("one")).unwrap_err();
    assert!(error.to_string().contains("apus-lab fabric up --name one"), "{error}");
    assert_eq!(down(&name("other")).unwrap(), Removal::Removed);
    assert_eq!(names().unwrap(), []);
}

fn a_name_belongs_to_one() {
    let layout = make("one");
    let again = up(&env::current_exe().unwrap(), &name("one"), &Spec::default());
    let again = again.expect_err("the name is in use");
    assert!(matches!(FabricError::of(&again), Some(FabricError::AlreadyUp { .. })), "{again:?}");
    assert!(layout.is_alive());
    down(&name("one")).unwrap();
}

fn an_owner_is_killed() {
    let layout = make("one");
    kill_owner("one");
    while layout.holders().any(Process::is_alive) {
        thread::yield_now();
    }
    wait_until_it_is_dead("one");
    assert_eq!(down(&name("one")).unwrap(), Removal::Stale);
    assert_eq!(down(&name("one")).unwrap(), Removal::Absent);
    // A stale file does not prevent a new fabric.
    make("one");
    kill_owner("one");
    wait_until_it_is_dead("one");
    make("one");
    assert_eq!(down(&name("one")).unwrap(), Removal::Removed);
}

/// The kernel releases the lock when it closes the owner's last file, possibly after the pipes that
/// hold the namespaces. Until then the fabric appears to exist.
fn wait_until_it_is_dead(text: &str) {
    loop {
        match find(&name(text)) {
            Ok(_) => thread::yield_now(),
            Err(error) if matches!(FabricError::of(&error), Some(FabricError::Dead { .. })) => {
                return;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Kills the owner of this test's own fabric.
fn kill_owner(name: &str) {
    let folder = env::var_os(crate::WORLD).unwrap();
    let file = std::path::Path::new(&folder).join(format!("apus/{name}.fabric.json"));
    let state: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let pid = i32::try_from(state["owner"]["pid"].as_u64().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

fn one_that_does_not_come_up() {
    let delay = std::time::Duration::from_micros(10);
    let spec = Spec { nodes: 2, delay, ..Spec::default() };
    match up(&env::current_exe().unwrap(), &name("one"), &spec) {
        Ok(_) => {
            eprintln!("SKIPPED: this kernel has netem, and nothing fails");
            down(&name("one")).unwrap();
        }
        Err(error) => assert!(error.to_string().contains("netem"), "{error}"),
    }
    assert_eq!(names().unwrap(), []);
}
