//! Introspection of live processes, and the exporter for Prometheus.
//!
//! The environment determines the folder of the sockets. Each case therefore runs in a separate
//! process: this program, with a separate folder.

mod cases;
#[cfg(feature = "prometheus")]
mod scrape;
mod traces;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Environment variable with the name of the case that a process runs.
const CASE: &str = "APUS_TEST_CASE";

/// Runs a case of [`cases`] in a separate process.
fn run(case: &str, folder: &Path, more: &[(&str, &str)]) -> Output {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "the_other_process", "--nocapture", "--test-threads", "1"]);
    program.env("APUS_RUNTIME_DIR", folder).env_remove("APUS_LIVE").envs(more.iter().copied());
    program.env(CASE, case).output().unwrap()
}

/// Runs a case of [`cases`] in a separate process. It must succeed and reach its end.
fn check(case: &str, folder: &Path, more: &[(&str, &str)]) -> Output {
    let output = run(case, folder, more);
    let said = String::from_utf8_lossy(&output.stdout);
    let done = said.contains("1 passed") && said.contains(&at_its_end(case));
    assert!(output.status.success() && done, "{case}: {output:?}");
    output
}

/// Returns the output of a process whose case has reached its end.
fn at_its_end(case: &str) -> String {
    format!("{case} is at its end.")
}

/// In the other process: runs its case. In this one: checks that a process fails if there is no
/// such case, and that it does not report the end of a case.
#[test]
fn the_other_process() {
    if let Ok(case) = std::env::var(CASE) {
        cases::run(&case);
        println!("{}", at_its_end(&case));
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let output = run("it_dances", &place.path().join("apus"), &[]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && said.contains("1 failed"), "{output:?}");
    assert!(!said.contains(&at_its_end("it_dances")), "{said}");
}

fn sockets(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_process_responds_while_it_has_endpoints() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("apus");
    check("it_responds_while_it_has_endpoints", &folder, &[]);
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(sockets(&folder), Vec::<PathBuf>::new(), "it has cleaned up");
}

#[test]
fn one_thread_serves_all_endpoints() {
    let place = tempfile::tempdir().unwrap();
    check("one_thread_serves_all_endpoints", &place.path().join("apus"), &[]);
}

#[test]
fn each_shard_is_shown() {
    let place = tempfile::tempdir().unwrap();
    check("each_shard_is_shown", &place.path().join("apus"), &[]);
}

#[test]
fn live_rpcs_are_shown() {
    let place = tempfile::tempdir().unwrap();
    check("live_rpcs_are_shown", &place.path().join("apus"), &[]);
}

#[test]
fn senders_are_shown() {
    let place = tempfile::tempdir().unwrap();
    check("senders_are_shown", &place.path().join("apus"), &[]);
}

#[test]
fn nonsense_is_refused_and_does_no_harm() {
    let place = tempfile::tempdir().unwrap();
    check("nonsense_is_refused", &place.path().join("apus"), &[]);
}

#[test]
fn the_time_trace_is_read_frozen_and_resumed() {
    let place = tempfile::tempdir().unwrap();
    check("its_trace_is_read_frozen_and_resumed", &place.path().join("apus"), &[]);
    check("it_refuses_to_freeze_without_a_trace", &place.path().join("apus"), &[]);
}

#[test]
fn a_process_can_opt_out() {
    let place = tempfile::tempdir().unwrap();
    check("a_hidden_endpoint_is_hidden", &place.path().join("apus"), &[]);
    check("the_environment_hides_all", &place.path().join("apus"), &[("APUS_LIVE", "0")]);
    assert_eq!(sockets(&place.path().join("apus")), Vec::<PathBuf>::new());
}

#[test]
fn an_open_folder_is_not_trusted_and_endpoints_work_all_the_same() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("apus");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let output = check("an_open_folder_is_not_trusted", &folder, &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    let warnings: Vec<&str> =
        errors.lines().filter(|line| line.starts_with("apus: warning: this process")).collect();
    assert_eq!(warnings.len(), 1, "{errors}");
    assert!(warnings[0].contains(folder.to_str().unwrap()), "{errors}");
    assert_eq!(sockets(&folder), Vec::<PathBuf>::new());
}

#[test]
fn a_process_without_descriptors_is_inspected() {
    let place = tempfile::tempdir().unwrap();
    check("one_without_descriptors_is_inspected", &place.path().join("apus"), &[]);
}

#[test]
fn the_socket_of_a_killed_process_is_removed_by_the_next() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("apus");
    let output = run("it_is_aborted", &folder, &[]);
    assert!(!output.status.success());
    let left = sockets(&folder);
    assert_eq!(left.len(), 1, "{left:?}");
    check("it_responds_while_it_has_endpoints", &folder, &[]);
    assert_eq!(sockets(&folder), Vec::<PathBuf>::new());
}
