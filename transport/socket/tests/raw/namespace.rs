//! Network namespaces for tests.
//!
//! A process that waits for the end of its input holds the namespace, which therefore always ends
//! with the test.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace with its loopback device up.
pub(crate) struct Namespace {
    holder: Child,
}

impl Namespace {
    pub(crate) fn new() -> Self {
        let mut holder = Command::new("unshare")
            .args(["--net", "sh", "-ec", "ip link set lo up; echo ready; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { holder }
    }

    /// Returns the process that holds the namespace.
    pub(crate) fn pid(&self) -> u32 {
        self.holder.id()
    }

    /// Runs a shell script in the namespace; returns its output.
    pub(crate) fn output_of(&self, script: &str) -> String {
        let net = format!("--net=/proc/{}/ns/net", self.pid());
        let output = Command::new("nsenter").args([&net, "sh", "-ec", script]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a shell script in the namespace.
    pub(crate) fn run(&self, script: &str) {
        self.output_of(script);
    }

    /// Runs `body` in the namespace. Sockets stay in the namespace that they were opened in.
    pub(crate) fn inside<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let entered = scope.spawn(|| {
                self.enter();
                body()
            });
            entered.join().unwrap()
        })
    }

    /// Moves this thread into the namespace permanently.
    pub(crate) fn enter(&self) {
        let namespace = File::open(format!("/proc/{}/ns/net", self.pid())).unwrap();
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// Two hosts and a cable: 10.9.0.1 and fd09::1 on the left, 10.9.0.2 and fd09::2 on the right, with
/// static neighbour entries.
pub(crate) struct Pair {
    pub(crate) left: Arc<Namespace>,
    pub(crate) right: Arc<Namespace>,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let [left, right] = [(); 2].map(|()| Arc::new(Namespace::new()));
        left.run(&format!(
            "ip link add veth address 02:00:00:00:00:01 type veth \
             peer name veth address 02:00:00:00:00:02 netns {}",
            right.pid()
        ));
        for (host, me, other) in [(&left, 1, 2), (&right, 2, 1)] {
            host.run(&format!(
                "ip addr add 10.9.0.{me}/24 dev veth
                 ip addr add fd09::{me}/64 dev veth nodad
                 ip link set veth up
                 for peer in 10.9.0.{other} fd09::{other}; do
                     ip neigh replace $peer lladdr 02:00:00:00:00:0{other} dev veth nud permanent
                 done"
            ));
        }
        // The side that was brought up first had no carrier, and drops packets until the system
        // notices the carrier. `state UP` is shown slightly too early; a command that takes the
        // same lock runs after all of that. A work queue adds the route of an IPv6 address.
        for host in [&left, &right] {
            host.run(
                "until ip link show veth | grep -q 'state UP'; do :; done; ip link set veth up
                 until ip -6 route show table local | grep -q 'local fd09::'; do :; done",
            );
        }
        Self { left, right }
    }
}

/// Returns the reason why such networks cannot be created here, if there is one.
pub(crate) fn skip_reason() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some(
            "raw sockets and namespaces need root; `unprivileged` runs the tests otherwise".into(),
        );
    }
    let works = works("ip link && nsenter --version");
    (!works).then(|| "it needs network namespaces, ip and nsenter".into())
}

/// Returns whether a shell script succeeds in a new network namespace.
pub(crate) fn works(script: &str) -> bool {
    let mut shell = Command::new("unshare");
    shell.args(["--net", "sh", "-ec", script]);
    shell.output().is_ok_and(|output| output.status.success())
}

/// Returns whether the test `name` can run here; prints the reason if not.
pub(crate) fn can_run(name: &str) -> bool {
    let reason = skip_reason();
    if let Some(why) = &reason {
        eprintln!("SKIPPED: {name}: {why}");
    }
    reason.is_none()
}
