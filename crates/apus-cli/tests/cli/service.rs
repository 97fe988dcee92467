//! What does a test need of `apus` processes?

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The command under test.
pub(crate) fn apus() -> Command {
    Command::new(env!("CARGO_BIN_EXE_apus"))
}

/// Runs it to its end.
pub(crate) fn run(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    apus().args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// What it printed to standard output, all of which is one JSON object.
pub(crate) fn object(output: &Output) -> Value {
    let text = text(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// What was printed.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// `apus serve` in a process of its own. It is killed when a test ends, also by a failed assertion.
pub(crate) struct Service {
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Service {
    /// Listens on any free port of the loopback interface, and is ready. With `--json`, too.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = apus()
            .args(["serve", "127.0.0.1:0"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let unknown = SocketAddr::from(([0; 4], 0));
        let mut service = Self { child, stdout, address: unknown };
        let mut line = String::new();
        service.stdout.read_line(&mut line).unwrap();
        let json = serde_json::from_str::<Value>(&line).ok();
        let address = match &json {
            Some(json) => json["listening"].as_str(),
            None => line.trim_end().strip_prefix("listening on "),
        };
        let address = address.and_then(|address| address.parse().ok());
        service.address = address.unwrap_or_else(|| panic!("no address in `{line}`"));
        service
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end: exit status, the rest of its standard output, standard error.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String) {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code(), stdout, stderr)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
