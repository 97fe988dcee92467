//! Which networks are the tests in?
//!
//! A namespace is held by a process that waits for the end of its input: it goes with the test, however that ends.

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

    /// The process that holds it.
    pub(crate) fn pid(&self) -> u32 {
        self.holder.id()
    }

    /// Runs a shell script in it; what that prints.
    pub(crate) fn told(&self, script: &str) -> String {
        let net = format!("--net=/proc/{}/ns/net", self.pid());
        let output = Command::new("nsenter").args([&net, "sh", "-ec", script]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a shell script in it.
    pub(crate) fn run(&self, script: &str) {
        self.told(script);
    }

    /// What `body` makes in it: sockets stay where they were opened.
    pub(crate) fn inside<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let entered = scope.spawn(|| {
                self.enter();
                body()
            });
            entered.join().unwrap()
        })
    }

    /// Moves this thread there, for good.
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

/// Two hosts and a cable: 10.9.0.1 and fd09::1 on the left, 10.9.0.2 and fd09::2 on the right, which know each other.
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
        // Whoever came up first had no carrier, and throws packets away until the system has noticed that it has one now. It
        // says so a little early; what takes the same lock comes after all of it.
        for host in [&left, &right] {
            host.run(
                "until ip link show veth | grep -q 'state UP'; do :; done; ip link set veth up",
            );
        }
        Self { left, right }
    }
}

/// Why such networks cannot be made here, if so.
pub(crate) fn hindrance() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some(
            "raw sockets and namespaces need root; `unprivileged` tries it otherwise".into(),
        );
    }
    let there = works("ip link && nsenter --version");
    (!there).then(|| "it needs network namespaces, ip and nsenter".into())
}

/// Whether a shell script ends well in a network of its own.
pub(crate) fn works(script: &str) -> bool {
    let mut shell = Command::new("unshare");
    shell.args(["--net", "sh", "-ec", script]);
    shell.output().is_ok_and(|output| output.status.success())
}

/// Whether the test `name` can run here; says so if not.
pub(crate) fn possible(name: &str) -> bool {
    let hindrance = hindrance();
    if let Some(why) = &hindrance {
        eprintln!("SKIPPED: {name}: {why}");
    }
    hindrance.is_none()
}
