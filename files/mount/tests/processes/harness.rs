//! Processes: this program again, as a server or as a mount, until its standard input is closed.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use apus::{Endpoint, PollMode};
use apus_fs::boot_time;
use apus_fs::mount::{MountSettings, Mounted};
use apus_fs::serve::{Export, Service};
use apus_fs::trust::Trust;
use apus_fs_core::client::Lost;
use apus_fs_core::server::{Server, ServerSettings};
use apus_fs_store::{DirectoryOptions, DirectoryStore};
use tempfile::TempDir;

/// Task of the child: `serve DIR ADDR` or `mount ADDR PATH LOST_SECONDS`, separated by newlines.
const ROLE: &str = "APUS_FS_TEST_ROLE";

/// Returns whether the test can run here, and prints the reason if not.
pub(crate) fn can_mount() -> bool {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root mounts without the package fuse3");
        return false;
    }
    if !Path::new("/dev/fuse").exists() {
        eprintln!("SKIPPED: this machine has no FUSE");
        return false;
    }
    true
}

/// Runs as the child, if this process is one.
pub(crate) fn run_as_child() {
    let Ok(role) = env::var(ROLE) else { return };
    apus::trace::set_sampling(apus::trace::Sampling::All);
    match role.split('\n').collect::<Vec<_>>()[..] {
        ["serve", directory, address, term] => {
            serve(Path::new(directory), address, Duration::from_secs(term.parse().unwrap()));
        }
        ["mount", address, path, lost] => mount(address.parse().unwrap(), path, lost),
        ["hostile", address] => crate::rights::attack(address.parse().unwrap()),
        _ => panic!("an unknown role: {role}"),
    }
}

fn serve(directory: &Path, address: &str, term: Duration) {
    let grace = directory.join(".apus-fs").exists();
    let store = DirectoryStore::open(directory, DirectoryOptions::default()).unwrap();
    let settings = ServerSettings { term, grace, ..ServerSettings::default() };
    let server = Server::new(store, settings, boot_time()).unwrap();
    let endpoint = Endpoint::bind(address).unwrap();
    let address = endpoint.local_addr();
    let export = Export {
        name: String::new(),
        directory: directory.display().to_string(),
        read_only: false,
        trust: Trust::default(),
        server,
    };
    let report = Box::new(|line: &str| eprintln!("server: {line}"));
    let service = Service::new(endpoint, vec![export], PollMode::Block, report);
    let service = service.unwrap();
    let stopper = service.stopper();
    at_end_of_input(move || stopper.stop());
    println!("\nready {address}");
    for store in service.run().unwrap() {
        store.close().unwrap();
    }
}

fn mount(server: SocketAddr, path: &str, lost: &str) {
    let mut settings = MountSettings::new(server, path.into());
    settings.poll = PollMode::Block;
    settings.lost_changes = lost_changes(path);
    if let Ok(seconds) = lost.parse() {
        settings.lost = Lost::Error(Duration::from_secs(seconds));
    }
    let mounted = Mounted::new(&settings, Box::new(|line| eprintln!("mount: {line}"))).unwrap();
    let stopper = mounted.stopper();
    at_end_of_input(move || stopper.stop());
    println!("\nready {}", mounted.path().display());
    mounted.run().unwrap();
}

/// Returns the folder where the mount at `path` keeps lost changes.
fn lost_changes(path: &str) -> PathBuf {
    format!("{path}.lost").into()
}

fn at_end_of_input(then: impl FnOnce() + Send + 'static) {
    thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        then();
    });
}

/// Runs a role as another user, and returns how it has ended.
pub(crate) fn run_as(uid: u32, role: &[&str]) -> std::io::Result<ExitStatus> {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "child_process", "--nocapture"]).env(ROLE, role.join("\n"));
    // The supplementary groups of root end with the change of the user.
    command.uid(uid).gid(uid).status()
}

/// A child. It is killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    /// Its output when it is ready: an address or a path.
    pub(crate) ready: String,
}

impl Process {
    fn start(role: &[&str]) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "child_process", "--nocapture"])
            .env(ROLE, role.join("\n"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = lines.find_map(|line| line.ok()?.strip_prefix("ready ").map(str::to_owned));
        let ready = ready.unwrap_or_else(|| panic!("{role:?} is not ready: {:?}", child.wait()));
        // Whatever else it prints.
        thread::spawn(move || lines.for_each(drop));
        Self { child, ready }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Has it end, and waits for that.
    pub(crate) fn stop(mut self) -> ExitStatus {
        drop(self.child.stdin.take());
        self.child.wait().unwrap()
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Kills it.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory to serve, and places to mount it.
pub(crate) struct World {
    folder: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(world.directory()).unwrap();
        world
    }

    /// The directory that is served.
    pub(crate) fn directory(&self) -> PathBuf {
        self.folder.path().join("served")
    }

    /// Serves on a free port, or on the port of an earlier server.
    pub(crate) fn serve(&self, address: Option<&str>) -> Process {
        // A short term: a client that was killed is waited for.
        self.serve_with_term(address, 2)
    }

    /// Serves with leases that are valid for a time, in seconds.
    pub(crate) fn serve_with_term(&self, address: Option<&str>, term: u32) -> Process {
        let (directory, address) = (self.directory(), address.unwrap_or("127.0.0.1:0"));
        Process::start(&["serve", directory.to_str().unwrap(), address, &term.to_string()])
    }

    /// The place of a mount.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        let place = self.folder.path().join(name);
        fs::create_dir_all(&place).unwrap();
        place
    }

    /// Returns the folder where a mount keeps lost changes.
    pub(crate) fn lost_changes(&self, name: &str) -> PathBuf {
        lost_changes(self.place(name).to_str().unwrap())
    }

    /// Mounts, and returns where.
    pub(crate) fn mount(&self, server: &str, name: &str) -> (Process, PathBuf) {
        self.mount_with(server, name, "wait")
    }

    /// Mounts; `lost` is the time after which operations fail if the server is lost, or `wait`.
    pub(crate) fn mount_with(&self, server: &str, name: &str, lost: &str) -> (Process, PathBuf) {
        let place = self.place(name);
        let process = Process::start(&["mount", server, place.to_str().unwrap(), lost]);
        (process, place)
    }
}

impl Drop for World {
    /// Detaches mounts that a failed test has left: otherwise the folder could not be removed.
    fn drop(&mut self) {
        for entry in fs::read_dir(self.folder.path()).into_iter().flatten().flatten() {
            if is_mounted(&entry.path()) {
                let _ = apus_fuse::unmount(&entry.path(), apus_fuse::Unmount::Lazy);
            }
        }
    }
}

/// Returns whether something is mounted at a path.
pub(crate) fn is_mounted(path: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mounts").unwrap();
    table.lines().any(|line| line.split(' ').nth(1) == path.to_str())
}
