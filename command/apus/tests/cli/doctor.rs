//! `apus doctor` on this host. `lab/command/tests/operator/doctor.rs` examines hosts and paths with
//! planted faults.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use apus_doctor::testing::{Report, Root};
use apus_measure::machine::{Cores, pin};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{apus, text};

/// Plants a process with these counters: a thread of this test that answers like an endpoint's
/// process. It ends with the program.
fn plant_process(runtime: &Path, counters: &Value) {
    fs::create_dir_all(runtime).unwrap();
    fs::set_permissions(runtime, Permissions::from_mode(0o700)).unwrap();
    let pid = std::process::id();
    let listener = UnixListener::bind(runtime.join(format!("{pid}.sock"))).unwrap();
    let endpoint = json!({ "address": "127.0.0.1:4000", "counters": counters });
    let snapshot = json!({ "pid": pid, "program": "planted", "endpoints": [endpoint] });
    let body = snapshot.to_string();
    let response = format!("{{\"ok\":true,\"bytes\":{}}}\n{body}", body.len());
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = String::new();
            // The first connection only checks that the process exists.
            if BufReader::new(&stream).read_line(&mut request).is_ok_and(|bytes| bytes > 0) {
                assert_eq!(request, "metrics\n");
                stream.write_all(response.as_bytes()).unwrap();
            }
        }
    });
}

/// A process that occupies a core until the test ends.
struct BusyLoop(Child);

impl Drop for BusyLoop {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn another_program_uses_the_core() {
    // Both run on one core, regardless of the machine's cores and of this container's CPU quota.
    let on_one_core = || {
        if let Some(core) = Cores::choose().server {
            pin(core).unwrap();
        }
        let busy =
            BusyLoop(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap());
        let output = apus().args(["doctor", "--json"]).stdin(Stdio::null()).output().unwrap();
        drop(busy);
        output
    };
    let output = thread::scope(|scope| scope.spawn(on_one_core).join()).unwrap();
    let report = Report::of(&output);
    report.assert_fault("other-load", "warning", "renice");
    let what = report.row("other-load")["measured"][0]["what"].as_str().unwrap();
    assert!(what.contains("(process "), "{what}");
}

#[test]
fn peers_that_repeat_what_has_arrived() {
    let root = Root::clean();
    let examine = || {
        let mut command = apus();
        command.env("APUS_RUNTIME_DIR", root.runtime());
        command.args(["doctor", "--json", "--root"]).arg(root.path());
        Report::of(&command.stdin(Stdio::null()).output().unwrap())
    };
    assert_eq!(examine().row("needless-resends")["severity"], "ok");
    plant_process(
        &root.runtime(),
        &json!({ "resent_discards": 9_283, "packets_received.data": 92_925 }),
    );
    let report = examine();
    let pid = std::process::id();
    report.assert_fault(
        "needless-resends",
        "warning",
        &format!("apus metrics {pid} --interval 10"),
    );
    let found = report.row("needless-resends")["found"].as_str().unwrap();
    assert!(
        found.contains(&format!("process {pid} (`planted`)")) && found.contains("10.0 %"),
        "{found}"
    );
}

#[test]
fn a_low_limit_of_open_files() {
    let mut command = Command::new("sh");
    let script = format!("ulimit -n 64; exec {} doctor --json", env!("CARGO_BIN_EXE_apus"));
    let output = command.args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
    Report::of(&output).assert_fault("descriptors", "warning", "1024");
}

#[test]
fn the_text_contains_the_same_findings() {
    let root = Root::clean();
    root.plant("proc/sys/net/core/rmem_max", "16384");
    let output =
        apus().args(["doctor", "--root"]).arg(root.path()).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stdout = text(&output.stdout);
    // The width of the first column depends on other faults of this machine.
    let is_row = |line: &str| line.split_whitespace().take(2).eq(["error", "receive-buffer"]);
    assert!(stdout.lines().any(is_row), "{stdout}");
    for expected in [
        "error: receive-buffer: net.core.rmem_max is 16384 bytes",
        "    sysctl -w net.core.rmem_max=4194304\n",
        "1 error, ",
    ] {
        assert!(stdout.contains(expected), "{expected}: {stdout}");
    }
}

#[test]
fn a_listener_answers_until_it_is_terminated() {
    let mut command = apus();
    command.args(["doctor", "--listen", "127.0.0.1:0", "--json"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let listening: Value = serde_json::from_str(&line).unwrap();
    let root = Root::clean();
    let address = listening["listening"].as_str().unwrap();
    let output =
        apus().args(["doctor", address, "--json", "--root"]).arg(root.path()).output().unwrap();
    let report = Report::of(&output);
    assert_eq!(report.row("path-priorities")["severity"], "ok", "{:#}", report.json);
    assert_eq!(report.row("path-loss")["severity"], "ok", "{:#}", report.json);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let end: Value = serde_json::from_str(&rest).unwrap();
    assert!(end["answered"].as_u64().unwrap() > 20, "{rest}");
}

/// The values of the file are judged, not the defaults.
#[test]
fn the_configuration_is_judged() {
    let root = Root::clean();
    let file = root.path().join("apus.toml");
    let content = "poll = 'spin'\nreceivers = 1000\nlocal = false\n\
                   [udp]\nreceive_buffer = 32768\nsegmentation_offload = false\nreports = false\n\
                   [trace]\nfolder = '/proc/none'\n";
    fs::write(&file, content).unwrap();
    let examine = |more: &[&str]| {
        let mut command = apus();
        command.env("APUS_RUNTIME_DIR", root.runtime()).args(["doctor", "--json", "--root"]);
        command.arg(root.path()).arg("--config").arg(&file).args(more).stdin(Stdio::null());
        Report::of(&command.output().unwrap())
    };
    let report = examine(&[]);
    report.assert_fault("receive-buffer", "error", "receive_buffer = 4194304");
    let found = report.row("receive-buffer")["found"].as_str().unwrap();
    assert!(found.contains("the configuration requests 32768"), "{found}");
    report.assert_fault("cores", "error", "receivers = ");
    report.assert_fault("segmentation-offload", "warning", "segmentation_offload = true");
    report.assert_fault("icmp-errors", "warning", "reports = true");
    report.assert_fault("trace-files", "warning", "/proc/none");
    assert_eq!(report.row("shared-memory")["severity"], "note");
    assert_eq!(report.row("configuration")["severity"], "ok");
    // Arguments have precedence over the file.
    assert_eq!(examine(&["--threads", "1"]).row("cores")["severity"], "ok");
}

#[test]
fn a_configuration_that_no_endpoint_accepts_is_an_error() {
    let root = Root::clean();
    let file = root.path().join("apus.toml");
    fs::write(&file, "[security]\nmode = 'secret'\nsecret = 'missing'\n").unwrap();
    let mut command = apus();
    command.args(["doctor", "--json", "--root"]).arg(root.path()).arg("--config").arg(&file);
    let report = Report::of(&command.stdin(Stdio::null()).output().unwrap());
    report.assert_fault("configuration", "error", "apus doctor");
}

/// A new network namespace has one interface, which is down.
#[test]
fn a_host_whose_interfaces_are_down_is_an_error() {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", env!("CARGO_BIN_EXE_apus"), "doctor"]);
    let Ok(output) = command.arg("--json").stdin(Stdio::null()).output() else {
        eprintln!("SKIPPED: unshare is missing");
        return;
    };
    if output.stdout.is_empty() {
        eprintln!("SKIPPED: {}", text(&output.stderr));
        return;
    }
    Report::of(&output).assert_fault("interface", "error", "ip link set lo up");
}
