//! A mount whose server's link is down: waiting programs can be killed, and continue when the link
//! returns.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::file_service::FileService;
use crate::harness::{program, text};
use crate::hosts::Hosts;

/// Substrings of `/proc/PID/wchan` while a program waits for the reply to a FUSE request.
const FUNCTIONS: [&str; 2] = ["request_wait", "fuse"];

/// Starts a program that reads a file, and returns once it waits in the kernel for the mount.
fn waiting_reader(file: &Path) -> Child {
    let reader = Command::new("cat").arg(file).stdout(Stdio::piped()).spawn().unwrap();
    let place = format!("/proc/{}/wchan", reader.id());
    let mut waits = false;
    while !waits {
        std::thread::yield_now();
        let function = fs::read_to_string(&place).unwrap();
        waits = FUNCTIONS.iter().any(|part| function.contains(part));
    }
    reader
}

/// FSRUN-2.
#[test]
fn programs_that_wait_for_a_link_can_be_killed_and_go_on_when_it_is_back() {
    if !Path::new("/dev/fuse").exists() || !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root mounts without the package fuse3");
        return;
    }
    if fs::read_to_string("/proc/self/wchan").is_err() {
        eprintln!("SKIPPED: this kernel does not show where a program waits (/proc/PID/wchan)");
        return;
    }
    let Some(program) = program() else { return };
    let Some(hosts) = Hosts::up() else { return };
    let service = FileService::new(&hosts, program);
    let (served, here) = (service.path("served"), service.path("here"));
    for name in ["known", "first", "second"] {
        fs::write(served.join(name), name).unwrap();
    }
    let _server = service.serve("");
    service.mount();
    assert_eq!(fs::read(here.join("known")).unwrap(), b"known");

    let link = |state: &str| {
        let words = format!("ip link set fab0 {state}");
        assert!(hosts.command(0, &words).status().unwrap().success());
    };
    link("down");
    assert_eq!(fs::read(here.join("known")).unwrap(), b"known", "leased: it needs no server");
    let mut killed = waiting_reader(&here.join("first"));
    let sent = Instant::now();
    killed.kill().unwrap();
    assert!(!killed.wait().unwrap().success());
    let ended = sent.elapsed();
    let waits = waiting_reader(&here.join("second"));
    link("up");
    let back = Instant::now();
    let read = waits.wait_with_output().unwrap();
    assert!(read.status.success());
    assert_eq!(text(&read.stdout), "second");
    // Shown with `--nocapture`; lab/log has measured times.
    eprintln!("killed: ended after {ended:?}; the link back: answered after {:?}", back.elapsed());
    assert_eq!(fs::read(here.join("first")).unwrap(), b"first");
}
