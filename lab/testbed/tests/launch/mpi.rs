//! Ranks that a real mpirun starts.

use std::env;
use std::process::{Command, ExitCode};

use apus_testbed::launch::{Launch, Ranks, Role};

use crate::RANK;
use crate::cluster::ring;

/// Runs a rank; rank 0 runs a ring twice.
pub(crate) fn rank() -> ExitCode {
    let program = env::current_exe().expect("a program knows its file");
    let joined = Ranks::here()
        .map_err(|error| error.to_string())
        .and_then(|ranks| ranks.join(program).map_err(|error| error.to_string()));
    let served = joined.and_then(|role| match role {
        Role::Coordinator(coordinator) => {
            let launch = Launch::Ranks(coordinator);
            let (first, second) = (ring(&launch), ring(&launch));
            let fresh = second.iter().all(|met| first.iter().all(|other| other.pid != met.pid));
            println!("a ring of {}, fresh: {fresh}", second.len());
            Ok(())
        }
        Role::Node(node) => node.serve().map_err(|error| error.to_string()),
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

pub(crate) fn ranks_find_each_other() {
    let this = env::current_exe().expect("a program knows its file");
    let output = Command::new("mpirun")
        .args(["--allow-run-as-root", "--oversubscribe", "-n", "3"])
        .arg(this)
        .arg(RANK)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {complaints}", output.status);
    assert_eq!(said.trim(), "a ring of 3, fresh: true", "{complaints}");
}
