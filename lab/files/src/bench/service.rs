//! Services: processes of a peer, which end with the measurement.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use apus_testbed::error::{Doing, Error};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::family::Family;
use super::interrupt::Interrupt;

/// Time for a process to end after SIGTERM: a mount sends its changes to the server in it.
const PATIENCE: Duration = Duration::from_secs(20);
/// Interval of checks for an interrupt or an end.
const INTERVAL: Duration = Duration::from_millis(2);

/// A running process. Dropping it sends SIGTERM, kills the process if it does not end, and then
/// kills its descendants.
#[derive(Debug)]
pub(super) struct Service {
    name: String,
    child: Child,
    pid: Pid,
    complaints: PathBuf,
    interrupt: Interrupt,
}

impl Service {
    /// Starts a program with its arguments. Its standard error is written to a file in `folder`.
    pub(super) fn start(
        name: &str,
        words: &[impl AsRef<OsStr>],
        folder: &Path,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        let [program, arguments @ ..] = words else {
            return Err(Error::Peer(format!("{name}: there is no program")));
        };
        let complaints = folder.join(format!("{}.log", name.replace(' ', "-")));
        let doing = || format!("start {name}");
        let log = File::create(&complaints).doing(doing)?;
        let child = Command::new(program)
            .args(arguments)
            // Ctrl-C is for the process that measures, which then ends the others in order.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .doing(doing)?;
        let pid = Pid::from_child(&child);
        interrupt.add(pid);
        Ok(Self { name: name.to_owned(), child, pid, complaints, interrupt: interrupt.clone() })
    }

    /// Returns the first line that the process writes to standard output.
    pub(super) fn first_line(&mut self) -> Result<String, Error> {
        let Some(mut output) = self.child.stdout.take() else {
            return Err(Error::Peer(format!("{}: its line was read before", self.name)));
        };
        let mut line = Vec::new();
        loop {
            self.interrupt.check()?;
            let interval = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            let ready = poll(&mut [PollFd::new(&output, PollFlags::IN)], Some(&interval));
            if !matches!(ready, Ok(1..)) {
                continue;
            }
            let mut byte = [0];
            let read = output.read(&mut byte).doing(|| format!("wait for {}", self.name))?;
            match byte {
                _ if read == 0 => return Err(self.failure()),
                [b'\n'] => break,
                [other] => line.push(other),
            }
        }
        self.child.stdout = Some(output);
        Ok(String::from_utf8_lossy(&line).into_owned())
    }

    /// Waits until `is_ready` returns true.
    pub(super) fn wait_until(&mut self, is_ready: impl Fn() -> bool) -> Result<(), Error> {
        while !is_ready() {
            self.interrupt.check()?;
            if self.has_ended() {
                return Err(self.failure());
            }
            thread::sleep(INTERVAL);
        }
        Ok(())
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the process, and waits until it has ended.
    pub(super) fn stop(self) {
        drop(self);
    }

    /// Returns whether it has ended. It is not waited for: until then no other process can have its
    /// number.
    fn has_ended(&self) -> bool {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error means that there is no such child any more.
        !matches!(waitid(WaitId::Pid(self.pid), how), Ok(None))
    }

    /// Returns the error of a failed process: its output on standard error.
    fn failure(&self) -> Error {
        let said = fs::read_to_string(&self.complaints).unwrap_or_default();
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        let said = if lines.is_empty() { "it has ended".to_owned() } else { lines.join("; ") };
        Error::Agent { agent: self.name.clone(), said }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let family = Family::of(self.pid);
        let began = Instant::now();
        // It fails if the process has ended already.
        let _ = kill_process(self.pid, Signal::TERM);
        while !self.has_ended() && began.elapsed() < PATIENCE && !self.interrupt.is_caught() {
            thread::sleep(INTERVAL);
        }
        let soon = Instant::now();
        while !self.has_ended() && soon.elapsed() < PATIENCE / 10 {
            thread::sleep(INTERVAL);
        }
        family.kill();
        self.interrupt.remove(self.pid);
        let _ = self.child.wait();
    }
}

/// Returns words for a command line.
pub(super) fn words<const N: usize>(prefix: &[OsString], words: [&OsStr; N]) -> Vec<OsString> {
    prefix.iter().cloned().chain(words.map(OsStr::to_owned)).collect()
}
