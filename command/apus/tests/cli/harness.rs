//! The harness: starts `apus` processes.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

pub(crate) use apus_command_line::testing::{object, text, with_fake};

/// Returns the command under test.
pub(crate) fn apus() -> Command {
    Command::new(env!("CARGO_BIN_EXE_apus"))
}

/// Runs the command to its end.
pub(crate) fn run(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    apus().args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// `apus serve` or `apus fs serve` in its own process. It is killed when the test ends, also after
/// a failed assertion.
pub(crate) struct Service {
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Service {
    /// Starts a service on a free port of the loopback interface and waits until it is ready. The
    /// arguments may include `--json`.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_as(apus(), arguments)
    }

    /// Starts a service as [`Service::start`] does, from a command with a custom environment.
    pub(crate) fn start_as(mut command: Command, arguments: &[&str]) -> Self {
        command.args(["serve", "127.0.0.1:0"]).args(arguments);
        Self::spawn(command)
    }

    /// Starts a file service on a free port of the loopback interface and waits until it is ready.
    pub(crate) fn start_files(arguments: &[&str]) -> Self {
        let mut command = apus();
        command.args(["fs", "serve", "--listen", "127.0.0.1:0"]).args(arguments);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command
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

    /// Returns the id of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the address it listens on.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Sends a signal to the process.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Reads standard error until a line with `text` arrives, and returns that line.
    pub(crate) fn error_line(&mut self, text: &str) -> String {
        let mut stderr = BufReader::new(self.child.stderr.as_mut().unwrap());
        loop {
            let mut line = String::new();
            assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "the process has ended");
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Waits for the end of the process. Returns its exit status, the rest of its standard output,
    /// and its standard error.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String) {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code(), stdout, stderr)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
