//! Endpoints of one host never share an RPC id.

use std::collections::BTreeSet;
use std::process::Command;

use apus_socket::{Raw, RawConfig};

use crate::namespace::{Namespace, can_run};

/// Set in processes started by this test.
const INSIDE: &str = "APUS_TEST_SHARING";

fn open() -> Raw {
    Raw::open(&RawConfig::bound_to("127.0.0.1:0".parse().unwrap())).unwrap()
}

/// Rules for peers, item 4: unique on the host, never reused, even after a process was killed.
#[test]
fn no_two_endpoints_of_a_host_have_an_id_in_common() {
    let name = "sharing::no_two_endpoints_of_a_host_have_an_id_in_common";
    if std::env::var_os(INSIDE).is_some() {
        let many: Vec<_> = (0..20).map(|_| open()).collect();
        for driver in &many {
            println!("id {}", driver.first_id());
        }
        // Exit without running destructors, as if killed.
        std::process::exit(0);
    }
    if !can_run(name) {
        return;
    }
    let host = Namespace::new();
    let test = std::env::current_exe().unwrap();
    let start = || {
        let test = &test;
        host.inside(move || {
            let mut command = Command::new(test);
            command.args(["--exact", name, "--nocapture"]).env(INSIDE, "1");
            command.stdout(std::process::Stdio::piped()).spawn().unwrap()
        })
    };
    let mut seen = BTreeSet::new();
    for round in 0..3 {
        let processes: Vec<_> = (0..4).map(|_| start()).collect();
        for process in processes {
            let output = process.wait_with_output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let ids: Vec<u64> =
                text.lines().filter_map(|line| line.split("id ").nth(1)?.parse().ok()).collect();
            assert_eq!(ids.len(), 20, "{text}");
            for id in ids {
                assert_eq!(
                    (id & 1, id >> 63),
                    (0, 1),
                    "an id of a client, and not of the kernel module"
                );
                assert!(seen.insert(id), "round {round}: {id} twice");
            }
        }
    }
    // The next endpoint starts above all used ids of its range.
    let last = host.inside(open).first_id();
    let before = seen.range(last >> 52 << 52..last).next_back();
    assert!(before.is_some(), "the range was used before");
    assert!(seen.range(last..(last >> 52 << 52) + (1 << 52)).next().is_none());
}
