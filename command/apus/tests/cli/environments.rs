//! Calls in unusual environments: clocks that differ between processes, and a client that does not
//! run.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Service, object, run, text};
use crate::metrics::{in_folder, service_and_client};

/// The monotonic clock of a container that was moved to another host differs from the host's.
/// Deadlines, shared memory and a group of endpoints do not depend on a common clock.
#[test]
fn processes_with_different_clocks_call_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let group = folder.path().join("group.toml");
    std::fs::write(&group, "host_group = 'clocks'\n[protocol]\nlink_mbps = 1000\n").unwrap();
    let group = group.to_str().unwrap();
    let service = Service::start(&["--config", group]);
    let far = ["--user", "--map-root-user", "--time", "--monotonic", "1000000", "--boottime"];
    for path in ["auto", "udp"] {
        let words = ["call", &service.address(), "--config", group, "--path", path, "--json"];
        let words = [&words[..], &["--quiet", "--size", "50000", "--count", "50"]].concat();
        let near = object(&run(&words));
        assert_eq!(near["rows"][0]["identical"], 50, "{near}");
        let mut command = Command::new("unshare");
        command.args(far).args(["1000000", "--fork", env!("CARGO_BIN_EXE_apus")]).args(&words);
        let Ok(output) = command.stdin(Stdio::null()).output() else {
            eprintln!("SKIPPED: unshare is missing");
            return;
        };
        if output.stdout.is_empty() && text(&output.stderr).contains("unshare") {
            eprintln!("SKIPPED: no time namespaces: {}", text(&output.stderr));
            return;
        }
        let result = object(&output);
        assert_eq!(result["rows"][0]["identical"], 50, "{result}");
    }
}

/// A client in a debugger neither takes its replies nor acknowledges them.
#[test]
fn a_stopped_client_does_not_disturb_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let (service, client) = service_and_client(folder.path());
    let pid = Pid::from_child(&client.0);
    kill_process(pid, Signal::STOP).unwrap();
    let words = ["call", &service.address(), "--count", "100", "--size", "20000", "--json"];
    let output = in_folder(folder.path()).args(words).stdin(Stdio::null()).output().unwrap();
    assert_eq!(object(&output)["rows"][0]["identical"], 100, "{}", text(&output.stderr));
    kill_process(pid, Signal::CONT).unwrap();
}
