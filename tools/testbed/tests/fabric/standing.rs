//! How does a fabric fare that outlives the command that made it?

use std::env;
use std::thread;

use apus_testbed::Error;
use apus_testbed::fabric::standing::{Down, Name, down, find, names, up};
use apus_testbed::fabric::{Process, Refusal, Spec};
use serde_json::Value;

use crate::test;

/// Takes everything down that a failed assertion leaves up.
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
    test(who, "a standing fabric is found and taken down", it_is_found_and_taken_down);
    test(who, "a name belongs to one fabric", a_name_belongs_to_one);
    test(who, "a keeper that is killed leaves a file at most", a_keeper_is_killed);
    test(who, "one that does not come up leaves nothing", one_that_does_not_come_up);
}

fn name(text: &str) -> Name {
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
    assert_eq!(down(&name("one")).unwrap(), Down::Ended);
    assert!(layout.holders().all(|holder| !holder.is_alive()) && other.is_alive());
    assert_eq!(down(&name("one")).unwrap(), Down::Absent, "a second time is no error");
    let error = find(&name("one")).unwrap_err();
    assert!(error.to_string().contains("apus fabric up --name one"), "{error}");
    assert_eq!(down(&name("other")).unwrap(), Down::Ended);
    assert_eq!(names().unwrap(), []);
}

fn a_name_belongs_to_one() {
    let layout = make("one");
    let again = up(&env::current_exe().unwrap(), &name("one"), &Spec::default());
    assert!(matches!(again, Err(Error::Fabric(Refusal::AlreadyUp { .. }))), "{again:?}");
    assert!(layout.is_alive());
    down(&name("one")).unwrap();
}

fn a_keeper_is_killed() {
    let layout = make("one");
    kill_keeper("one");
    while layout.holders().any(Process::is_alive) {
        thread::yield_now();
    }
    wait_until_it_is_dead("one");
    assert_eq!(down(&name("one")).unwrap(), Down::Stale);
    assert_eq!(down(&name("one")).unwrap(), Down::Absent);
    // And what is stale does not stand in the way.
    make("one");
    kill_keeper("one");
    wait_until_it_is_dead("one");
    make("one");
    assert_eq!(down(&name("one")).unwrap(), Down::Ended);
}

/// The lock goes with the last of the keeper's files, which may be after the pipes that hold the others: what is
/// seen before is a fabric that stands.
fn wait_until_it_is_dead(text: &str) {
    loop {
        match find(&name(text)) {
            Err(Error::Fabric(Refusal::Dead { .. })) => return,
            Ok(_) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Ends the process that this test's own fabric belongs to.
fn kill_keeper(name: &str) {
    let folder = env::var_os(crate::WORLD).unwrap();
    let file = std::path::Path::new(&folder).join(format!("apus/{name}.fabric.json"));
    let state: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let pid = i32::try_from(state["keeper"]["pid"].as_u64().unwrap()).unwrap();
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
