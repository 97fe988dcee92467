//! What do processes of another user get?
//!
//! Needs to become another user, which root can. If it cannot be tried, that is said.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use apus_local::{ConnectError, Connecting, Listener, Local, PeerName, PeerPolicy, PollSet};

use crate::child::{VARIABLE, config};
use crate::survivor::LONG;

/// A user that owns nothing: "nobody" on most systems.
const NOBODY: u32 = 65_534;

/// The other user's process: connects, and says what became of it.
pub(crate) fn knock(name: &PeerName) {
    let mut config = config(true);
    // It would take anybody: what is tried is the other side.
    config.trust = PeerPolicy::Anyone;
    let result = Connecting::start(name, &config).and_then(|it| it.finish(LONG));
    println!("knocked: {}", result.map_or_else(|error| error.to_string(), |_| "let in".into()));
}

/// What a process of another user is told by a server with this trust; `None` if there is no such process.
fn try_one(number: u32, trust: PeerPolicy) -> Option<String> {
    let name = format!("stranger/{}/{number}", std::process::id());
    let mut config = config(true);
    config.trust = trust;
    let local = Local::new(Some(&PeerName::new(&name)), config).unwrap();
    let child = command("stranger", &name).spawn().ok()?;
    let over = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sweep = PollSet::default();
            while !over.load(Ordering::Acquire) {
                local.poll_sockets(&mut sweep, Some(Duration::from_millis(10))).unwrap();
            }
        });
        let output = child.wait_with_output().unwrap();
        over.store(true, Ordering::Release);
        output
    });
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.split_once("knocked: ")).map(|(_, rest)| rest);
    Some(line.unwrap_or_else(|| panic!("{text}")).to_owned())
}

pub(crate) fn try_all() {
    let root = rustix::process::geteuid().is_root();
    let Some(refused) = root.then(|| try_one(0, PeerPolicy::SameUser)).flatten() else {
        eprintln!("SKIPPED: this process cannot start one of another user");
        return;
    };
    assert_eq!(refused, "the peer refused: it does not allow this user");
    assert_eq!(try_one(1, PeerPolicy::Users(vec![NOBODY])).unwrap(), "let in");
    assert_eq!(try_one(2, PeerPolicy::Users(vec![NOBODY - 1])).unwrap(), refused);
    assert_eq!(try_one(3, PeerPolicy::Anyone).unwrap(), "let in");
    clients_look_too();
}

/// A client does not greet a server of a user that it does not trust: nobody gets its calls by taking a name.
fn clients_look_too() {
    let name = format!("stranger/{}/server", std::process::id());
    let mut child = command("stranger-server", &name).stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !lines.next().expect("it says when it listens").unwrap().contains("listens") {}
    let refused = Connecting::start(&PeerName::new(&name), &config(true)).unwrap_err();
    assert!(matches!(refused, ConnectError::ForeignUser { uid: NOBODY }), "{refused}");
    let mut trusting = config(true);
    trusting.trust = PeerPolicy::Users(vec![NOBODY]);
    Connecting::start(&PeerName::new(&name), &trusting).unwrap();
    // It ends when its standard input does.
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// The other user's process as a server, until its standard input ends.
pub(crate) fn listen(name: &PeerName) {
    let _listener = Listener::bind(name, &config(true)).unwrap();
    println!("listens");
    std::io::stdout().flush().unwrap();
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).unwrap();
}

/// This program as another user.
fn command(role: &str, name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_other_process", "--nocapture", "--test-threads=1"]);
    command.env(VARIABLE, format!("{role} small {name}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).current_dir("/");
    std::os::unix::process::CommandExt::uid(&mut command, NOBODY);
    command
}
