//! Agents on hosts reachable only by ssh.
//!
//! Three real sshd instances, each with a separate address and key, in a namespace with a private
//! /run and no other network.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use apus_testbed::Error;
use apus_testbed::launch::{Launch, Ssh, hosts};
use apus_testbed::process::{AGENT, Results};
use serde_json::json;
use tempfile::TempDir;

use crate::cluster::{ring, start};
use crate::run;

/// Must be started by its full path.
pub(crate) const SSHD: &str = "/usr/sbin/sshd";

/// Hosts with sshd, and a user who may log in.
struct Hosts {
    folder: TempDir,
    servers: Vec<Child>,
}

impl Hosts {
    /// Starts sshd at 127.0.0.1, 127.0.0.2 and so on.
    fn start(number: usize) -> Self {
        run("mount", &["-t", "tmpfs", "tmpfs", "/run"]);
        // sshd changes to this empty folder before authentication.
        fs::create_dir("/run/sshd").unwrap();
        let mut hosts = Self { folder: tempfile::tempdir().unwrap(), servers: Vec::new() };
        hosts.key("user");
        hosts.key("unknown");
        let mut known = String::new();
        for number in 1..=number {
            let (address, name) = (format!("127.0.0.{number}"), format!("host{number}"));
            hosts.key(&name);
            known += &format!("{address} {}", hosts.read(&format!("{name}.pub")));
            let path = |name: &str| hosts.path(name);
            let config = format!(
                "ListenAddress {address}:22\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n\
                 PermitRootLogin yes\nUsePAM no\nPidFile none\nPasswordAuthentication no\n\
                 KbdInteractiveAuthentication no\n",
                path(&name),
                path("user.pub")
            );
            fs::write(path(&format!("{name}.conf")), config).unwrap();
            let mut server = Command::new(SSHD)
                .args(["-D", "-e", "-f", &path(&format!("{name}.conf"))])
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut lines = BufReader::new(server.stderr.take().expect("piped")).lines();
            let listening = lines.by_ref().any(|line| line.unwrap().contains("listening"));
            assert!(listening, "sshd ended");
            // Drains the log, in which sshd reports every failed login.
            thread::spawn(move || lines.count());
            hosts.servers.push(server);
        }
        fs::write(hosts.path("known"), known).unwrap();
        hosts.client("client.conf", "user", "known");
        hosts.client("unknown.conf", "unknown", "known");
        hosts.client("first-time.conf", "user", "no-host-known");
        hosts
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("text").to_owned()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn key(&self, name: &str) {
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &self.path(name)]);
    }

    /// Writes an ssh configuration that is independent of the user who runs this test.
    fn client(&self, name: &str, key: &str, known: &str) {
        let (key, known) = (self.path(key), self.path(known));
        let config = format!(
            "IdentityFile {key}\nIdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile {known}\n\
             GlobalKnownHostsFile none\nStrictHostKeyChecking yes\n"
        );
        fs::write(self.path(name), config).unwrap();
    }

    /// Checks the hosts of a host file.
    fn check(&self, client: &str, text: &str) -> Result<Launch, Error> {
        let command = ["ssh", "-F", &self.path(client)].map(OsString::from).to_vec();
        check(command, text)
    }
}

fn check(command: Vec<OsString>, text: &str) -> Result<Launch, Error> {
    let program = env::current_exe().expect("a program knows its file");
    Ssh::check(&hosts(text).unwrap(), command, program.as_os_str()).map(Launch::Ssh)
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for server in &mut self.servers {
            // Both fail only if it has been waited for.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

pub(crate) fn hosts_run_agents_twice() {
    let hosts = Hosts::start(3);
    // A name that a shell would split.
    let program = hosts.path("it's $HOME \"here\"");
    symlink(env::current_exe().unwrap(), &program).unwrap();
    let quoted = program.replace('\'', "'\\''");
    let text = format!(
        "127.0.0.1\nroot@127.0.0.2:22  program='{quoted}'\n127.0.0.3 bind=127.0.0.77 # elsewhere\n"
    );
    let launch = hosts.check("client.conf", &text).unwrap();
    let (first, second) = (ring(&launch), ring(&launch));
    let binds: Vec<_> = first.iter().map(|met| met.bind).collect();
    let expected = [[127, 0, 0, 1], [127, 0, 0, 2], [127, 0, 0, 77]].map(IpAddr::from);
    assert_eq!(binds, expected, "where ssh came to, or as the file says");
    for met in &second {
        assert!(first.iter().all(|other| other.pid != met.pid), "the same process again");
    }
}

pub(crate) fn hosts_that_cannot_take_part_are_named() {
    let hosts = Hosts::start(1);
    let error = |client: &str, text: &str| hosts.check(client, text).unwrap_err().to_string();
    let all_in = |error: String, words: &[&str]| {
        assert!(words.iter().all(|words| error.contains(words)), "{words:?} in {error}");
    };
    let first = "127.0.0.1 (line 1 of the host file): ";
    all_in(
        error("unknown.conf", "127.0.0.1"),
        &[first, "Permission denied", "ssh-copy-id 127.0.0.1"],
    );
    all_in(
        error("first-time.conf", "127.0.0.1:22"),
        &[first, "verification failed", "ssh -p 22 127.0.0.1"],
    );
    all_in(
        error("client.conf", "127.0.0.1 program=/no/apus"),
        &[first, "/no/apus", "program=PATH"],
    );
    all_in(error("client.conf", "127.0.0.1 program=/etc"), &[first, "/etc cannot run there"]);
    all_in(
        error("client.conf", "127.0.0.1 program=/bin/cat"),
        &[first, "install the same on all hosts"],
    );
    all_in(
        error("client.conf", "127.0.0.1\n127.0.0.8\nno-such.invalid"),
        &["127.0.0.8 (line 2", "refused", "port 22", "(nor can take part: no-such.invalid)"],
    );
    all_in(error("client.conf", "no-such.invalid"), &["resolve", "written correctly"]);
    let missing = check(vec!["/nowhere/ssh".into()], "127.0.0.1").unwrap_err().to_string();
    all_in(missing, &[first, "there is no /nowhere/ssh here", "openssh-client"]);
}

pub(crate) fn a_host_whose_agent_dies_is_named() {
    let mut hosts = Hosts::start(3);
    let launch = hosts.check("client.conf", "127.0.0.1\n127.0.0.2\n127.0.0.3").unwrap();
    let mut crew = start(&launch, &["wait", "die", "wait"]).unwrap();
    crew.addresses().unwrap();
    crew.begin(&[(); 3], Duration::ZERO).unwrap();
    let Results { each, failure } = crew.results::<u32>(Duration::ZERO);
    let failure = failure.unwrap().to_string();
    assert_eq!(failure, "node 1 on 127.0.0.2: exit status: 3: the disk is full");
    assert!(each[0].is_some() && each[1].is_none() && each[2].is_some(), "{each:?}");
    // A host that is down when the next run starts.
    let server = &mut hosts.servers[2];
    server.kill().and_then(|()| server.wait()).unwrap();
    let mut crew = start(&launch, &["wait"; 3]).unwrap();
    let failure = crew.addresses().unwrap_err().to_string();
    assert!(failure.starts_with("node 2 on 127.0.0.3: "), "{failure}");
    assert!(failure.contains("refused") && failure.contains("does sshd run there"), "{failure}");
}

/// When the parent exits, the local ssh, the connection, and the remote command end.
pub(crate) fn agents_end_with_their_parent() {
    let hosts = Hosts::start(1);
    let launch = hosts.check("client.conf", "127.0.0.1\n127.0.0.1").unwrap();
    let mut crew = start(&launch, &["ring", "ring"]).unwrap();
    crew.addresses().unwrap();
    let agents = agents();
    assert_eq!(agents.len(), 2, "{agents:?}");
    drop(crew);
    wait_for_the_end_of(&agents);
}

/// A parent that dies cannot end ssh: the agent only reads the end of its input.
pub(crate) fn agents_see_the_end_of_their_input() {
    let hosts = Hosts::start(1);
    let this = env::current_exe().unwrap();
    let mut child = Command::new("ssh")
        .args(["-F", &hosts.path("client.conf"), "127.0.0.1", "exec"])
        .args([this.as_os_str(), OsStr::new(AGENT)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let task = json!({"name": "orphan", "core": null, "job": "wait", "details": null});
    writeln!(input, "{}", json!({ "task": task })).unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.contains("ready"), "{ready}");
    let agents = agents();
    assert_eq!(agents.len(), 1, "{agents:?}");
    drop(input);
    wait_for_the_end_of(&agents);
    assert!(!child.wait().unwrap().success());
}

/// Returns the agents of this test, as folders of /proc.
fn agents() -> Vec<PathBuf> {
    let this = fs::read_link("/proc/self/ns/net").unwrap();
    let ours = |path: &PathBuf| fs::read_link(path.join("ns/net")).is_ok_and(|net| net == this);
    let entries = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| ours(path) && is_agent(path)).collect()
}

/// Returns whether a process is an agent. The ssh command of an agent has more arguments, and an
/// exited process has no arguments.
fn is_agent(process: &Path) -> bool {
    // Processes start and end while this reads them.
    let line = fs::read(process.join("cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect();
    words.len() == 2 && words[1] == AGENT.as_bytes()
}

fn wait_for_the_end_of(agents: &[PathBuf]) {
    while agents.iter().any(|agent| is_agent(agent)) {
        thread::yield_now();
    }
}
