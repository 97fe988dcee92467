//! The process that is killed.

use std::collections::HashMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use apus_local::{
    Local, LocalConfig, PairEvent, PeerName, PollEvent, PollSet, ReceiveQuota, RingSizes, SendError,
};
use rand::SeedableRng;
use rand_pcg::Pcg64;

use crate::body;
use crate::survivor::{LONG, Plan};

pub(crate) const VARIABLE: &str = "APUS_LOCAL_KILL_CHILD";

/// Longest sleep before a process checks whether the test is over.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Outstanding calls of a client.
const OUTSTANDING: usize = 48;

/// Returns whether this process is the one to be killed.
pub(crate) fn is_wanted() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Returns the command that starts the process to be killed.
pub(crate) fn command(plan: &Plan, name: &str) -> Command {
    let role = if plan.child_serves { "server" } else { "client" };
    let rings = if plan.small { "small" } else { "usual" };
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_other_process", "--nocapture", "--test-threads=1"]);
    command.env(VARIABLE, format!("{role} {rings} {name}"));
    command.stdout(Stdio::piped()).stdin(Stdio::null());
    command
}

pub(crate) fn config(small: bool) -> LocalConfig {
    let mut config = LocalConfig::default();
    if small {
        config.sizes = RingSizes { short: 4096, bulk: 4096 };
    }
    config
}

pub(crate) fn run() {
    let text = std::env::var(VARIABLE).unwrap();
    let [role, rings, name] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
    let (name, config) = (PeerName::new(name), config(rings == "small"));
    if role == "foreign-client" {
        crate::foreign_user::connect(&name);
    } else if role == "foreign-server" {
        crate::foreign_user::listen(&name);
    } else if role == "server" {
        let local = Local::new(Some(&name), config).unwrap();
        println!("ready");
        std::io::stdout().flush().unwrap();
        serve(&local, &AtomicU64::new(0), &mut || false);
    } else {
        let local = Local::new(None, config).unwrap();
        call(&local, &name, 7, &AtomicU64::new(0), &mut || false);
    }
}

/// Answers until `done`. Counts requests, whose contents must be right. Responses without room are
/// retained until there is room. Returns the reasons of ended pairs.
pub(crate) fn serve(
    local: &Local,
    got: &AtomicU64,
    done: &mut dyn FnMut() -> bool,
) -> Vec<apus_local::Disconnected> {
    let mut poll_set = PollSet::default();
    let mut ends = Vec::new();
    let mut waiting = Vec::new();
    loop {
        let records =
            local.receive(&mut poll_set, ReceiveQuota::default(), |pair, event| match event {
                PollEvent::Event(PairEvent::Request { id, payload }) => {
                    assert_eq!(payload, body::request(id, payload.len()), "corrupt request {id}");
                    got.fetch_add(1, Ordering::Relaxed);
                    waiting.push((pair.clone(), id, payload.len()));
                }
                PollEvent::Event(_) => {}
                PollEvent::Disconnected(why) => ends.push(why),
            });
        waiting.retain(|(pair, id, len)| match pair.send(*id, &[body::response(*id, *len)]) {
            Err(SendError::Full) => true,
            Ok(_) | Err(SendError::Disconnected(_)) => false,
            Err(error) => panic!("{error}"),
        });
        if done() {
            return ends;
        }
        if records == 0 {
            let sleeps = local.prepare_to_sleep(&mut poll_set);
            local
                .poll_sockets(
                    &mut poll_set,
                    Some(if sleeps { CHECK_INTERVAL } else { Duration::ZERO }),
                )
                .unwrap();
            local.finish_sleep(&poll_set);
        }
    }
}

/// Calls until the pair ends or `done`; returns why it ended, if it did. Counts responses, whose
/// contents must be right.
pub(crate) fn call(
    local: &Local,
    name: &PeerName,
    seed: u64,
    got: &AtomicU64,
    done: &mut dyn FnMut() -> bool,
) -> Option<apus_local::Disconnected> {
    let mut random = Pcg64::seed_from_u64(seed);
    let Ok(pair) = local.connect(name, LONG) else { return None };
    let mut poll_set = PollSet::default();
    let mut calls = HashMap::new();
    let mut next = 0;
    loop {
        while calls.len() < OUTSTANDING {
            let len = body::length(&mut random);
            match pair.send(next, &[body::request(next, len)]) {
                Ok(ticket) => {
                    calls.insert(next, (len, ticket));
                    next += 1;
                }
                Err(SendError::Full | SendError::Disconnected(_)) => break,
                Err(error) => panic!("{error}"),
            }
        }
        let mut end = None;
        let records =
            local.receive(&mut poll_set, ReceiveQuota::default(), |_, event| match event {
                PollEvent::Event(PairEvent::Response { id, payload }) => {
                    let (len, ticket) = calls.remove(&id).expect("one response for each call");
                    assert_eq!(payload, body::response(id, len), "corrupt response {id}");
                    assert!(pair.may_have_arrived(ticket), "it was answered");
                    got.fetch_add(1, Ordering::Relaxed);
                }
                PollEvent::Event(PairEvent::Room) => {}
                PollEvent::Event(event) => panic!("{event:?}"),
                PollEvent::Disconnected(why) => end = Some(why),
            });
        if end.is_some() || done() {
            return end;
        }
        if records == 0 {
            let sleeps = local.prepare_to_sleep(&mut poll_set);
            local
                .poll_sockets(
                    &mut poll_set,
                    Some(if sleeps { CHECK_INTERVAL } else { Duration::ZERO }),
                )
                .unwrap();
            local.finish_sleep(&poll_set);
        }
    }
}
