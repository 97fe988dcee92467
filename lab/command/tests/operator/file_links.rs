//! A mount whose server's link is down: waiting programs can be killed, and continue when the link
//! returns.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use tempfile::TempDir;

use crate::harness::{program, text};
use crate::hosts::Hosts;

/// Substrings of `/proc/PID/wchan` while a program waits for the reply to a FUSE request.
const FUNCTIONS: [&str; 2] = ["request_wait", "fuse"];

/// A served directory and a place to mount it.
pub(crate) struct Folders {
    all: TempDir,
    program: PathBuf,
}

impl Folders {
    pub(crate) fn new(program: PathBuf) -> Self {
        let folders = Self { all: tempfile::tempdir().unwrap(), program };
        fs::create_dir(folders.path("served")).unwrap();
        fs::create_dir(folders.path("here")).unwrap();
        folders
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.all.path().join(name)
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        // Ends the mount even while its server is unreachable.
        let mut umount = Command::new(&self.program);
        umount.args(["fs", "umount", "--lazy"]).arg(self.path("here"));
        let _ = umount.stdin(Stdio::null()).output();
    }
}

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
    let folders = Folders::new(program.clone());
    let (served, here) = (folders.path("served"), folders.path("here"));
    for name in ["known", "first", "second"] {
        fs::write(served.join(name), name).unwrap();
    }
    let program = program.display();
    let address = "10.77.0.1:4000";
    let words = format!("{program} fs serve {} --listen {address}", served.display());
    let mut server = hosts
        .command(0, &format!("{words} --trust 10.77.0.0/24"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, format!("listening on {address}\n"));
    let words = format!("{program} fs mount {address} {} --daemon", here.display());
    let mounted = hosts.command(1, &words).output().unwrap();
    assert!(mounted.status.success(), "{}", text(&mounted.stderr));
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

    drop(folders);
    server.kill().unwrap();
    server.wait().unwrap();
}
