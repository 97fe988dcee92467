//! The other process: this program again, as another user.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use apus_local::{LocalConfig, PeerName, RingSizes};

const VARIABLE: &str = "APUS_LOCAL_NEIGHBOUR";

/// The attacker: a user without files that is not the overflow uid.
pub(crate) const ATTACKER: u32 = 54_321;
/// Another user without files.
pub(crate) const VICTIM: u32 = 54_322;

/// Tasks of the other process, by name.
type Roles = HashMap<&'static str, fn(&PeerName)>;

fn roles() -> Roles {
    Roles::from([
        ("read-refusal", crate::refused::read_refusal as fn(&PeerName)),
        ("unmapped-server", crate::user_namespace::serve),
        ("flood", crate::flood::connect_again_and_again),
        ("client", crate::user_namespace::connect),
    ])
}

/// Runs the role of this process, if it has one.
pub(crate) fn run_if_wanted() {
    let Ok(text) = std::env::var(VARIABLE) else { return };
    let (role, name) = text.split_once(' ').unwrap();
    roles()[role](&PeerName::new(name));
}

/// Reports a line to the parent.
pub(crate) fn report(text: &str) {
    println!("{REPORT}{text}");
    std::io::stdout().flush().unwrap();
}

/// Waits until the parent ends, or wants this process to end.
pub(crate) fn wait_for_end() {
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).unwrap();
}

const REPORT: &str = "report: ";

/// A process that runs a role. It ends when its parent drops it.
pub(crate) struct Other {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Other {
    /// Starts this program as `user`, through `wrapper` if that is not empty. Returns `None`, and
    /// prints that the test is skipped, if the system does not permit that.
    pub(crate) fn start(role: &str, name: &str, user: u32, wrapper: &[&str]) -> Option<Self> {
        let program = std::env::current_exe().unwrap();
        let mut words = wrapper.iter().map(|word| (*word).into()).collect::<Vec<_>>();
        words.push(program.into_os_string());
        let mut command = Command::new(words.remove(0));
        command.args(words);
        command.args(["--exact", "the_other_process", "--nocapture", "--test-threads=1"]);
        command.env(VARIABLE, format!("{role} {name}")).current_dir("/");
        command.uid(user).gid(user).stdin(Stdio::piped()).stdout(Stdio::piped());
        match command.spawn() {
            Ok(mut child) => {
                let stdin = child.stdin.take();
                let lines = BufReader::new(child.stdout.take().unwrap());
                Some(Self { child, stdin, lines })
            }
            Err(error) => {
                eprintln!("SKIPPED: cannot start a process of user {user}: {error}");
                None
            }
        }
    }

    /// Returns the next line that the process reports; `None` if it has ended.
    pub(crate) fn next(&mut self) -> Option<String> {
        let mut lines = (&mut self.lines).lines().map(Result::unwrap);
        lines.find_map(|line| Some(line.split_once(REPORT)?.1.to_owned()))
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}

/// Returns a name that no other test of any process uses.
pub(crate) fn name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("neighbour/{}/{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Returns a configuration with the smallest rings.
pub(crate) fn config() -> LocalConfig {
    let mut config = LocalConfig::default();
    config.sizes = RingSizes { short: 4096, bulk: 4096 };
    config
}
