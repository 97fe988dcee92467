//! Processes of other users are accepted according to the policy.
//!
//! Starting a process of another user needs root. Without root the test reports that it was
//! skipped.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use apus_local::{ConnectError, Connecting, Listener, Local, PeerName, PeerPolicy, PollSet};

use crate::child::{VARIABLE, config};
use crate::survivor::LONG;

/// A user without files and processes, on most systems.
const UNPRIVILEGED: u32 = 65_534;

/// Client of another user: connects and prints the result.
pub(crate) fn connect(name: &PeerName) {
    let mut config = config(true);
    // This side accepts any peer, since the test is about the policy of the other side.
    config.peer_policy = PeerPolicy::Anyone;
    let result = Connecting::start(name, &config).and_then(|it| it.finish(LONG));
    println!("result: {}", result.map_or_else(|error| error.to_string(), |_| "accepted".into()));
}

/// Returns the result of a client of another user at a server with this policy; `None` if such a
/// process cannot be started.
fn try_one(number: u32, policy: PeerPolicy) -> Option<String> {
    let name = format!("foreign/{}/{number}", std::process::id());
    let mut config = config(true);
    config.peer_policy = policy;
    let local = Local::new(Some(&PeerName::new(&name)), config).unwrap();
    let child = command("foreign-client", &name).spawn().ok()?;
    let over = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut poll_set = PollSet::default();
            while !over.load(Ordering::Acquire) {
                local.poll_sockets(&mut poll_set, Some(Duration::from_millis(10))).unwrap();
            }
        });
        let output = child.wait_with_output().unwrap();
        over.store(true, Ordering::Release);
        output
    });
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("result: ")).map(|(_, rest)| rest);
    Some(line.unwrap_or_else(|| panic!("{text}")).to_owned())
}

pub(crate) fn try_all() {
    let root = rustix::process::geteuid().is_root();
    let Some(refused) = root.then(|| try_one(0, PeerPolicy::SameUser)).flatten() else {
        eprintln!("SKIPPED: this process cannot start one of another user");
        return;
    };
    assert_eq!(refused, "the peer rejected the connection: user not allowed");
    assert_eq!(try_one(1, PeerPolicy::Users(vec![UNPRIVILEGED])).unwrap(), "accepted");
    assert_eq!(try_one(2, PeerPolicy::Users(vec![UNPRIVILEGED - 1])).unwrap(), refused);
    assert_eq!(try_one(3, PeerPolicy::Anyone).unwrap(), "accepted");
    clients_check_the_server();
}

/// A client does not connect to a server of a user that its policy excludes: binding a name is not
/// enough to receive its calls.
fn clients_check_the_server() {
    let name = format!("foreign/{}/server", std::process::id());
    let mut child = command("foreign-server", &name).stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !lines.next().expect("the child reports that it listens").unwrap().contains("listens") {}
    let refused = Connecting::start(&PeerName::new(&name), &config(true)).unwrap_err();
    assert!(matches!(refused, ConnectError::ForeignUser { uid: UNPRIVILEGED }), "{refused}");
    let mut permissive = config(true);
    permissive.peer_policy = PeerPolicy::Users(vec![UNPRIVILEGED]);
    Connecting::start(&PeerName::new(&name), &permissive).unwrap();
    // The child ends when its standard input does.
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// Server of another user: listens until its standard input ends.
pub(crate) fn listen(name: &PeerName) {
    let _listener = Listener::bind(name, &config(true)).unwrap();
    println!("listens");
    std::io::stdout().flush().unwrap();
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).unwrap();
}

/// Returns the command that runs this program as another user.
fn command(role: &str, name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_other_process", "--nocapture", "--test-threads=1"]);
    command.env(VARIABLE, format!("{role} small {name}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).current_dir("/");
    std::os::unix::process::CommandExt::uid(&mut command, UNPRIVILEGED);
    command
}
