//! Priorities of threads on a core.

use std::process::Command;

use apus_testbed::error::{Doing, Error};
use apus_testbed::fabric::Tool;

/// The urgency of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Priority {
    /// `SCHED_FIFO` at that level, 1 to 99: interrupts all that is lower as soon as it has something to do,
    /// and is interrupted by nothing that is not higher.
    RealTime(u8),
    /// As every program.
    Ordinary,
    /// `SCHED_IDLE`: gets what is left.
    Leftover,
}

impl Priority {
    /// Takes it, for the calling thread.
    ///
    /// By the system's own `chrt`: no safe library has the call.
    ///
    /// # Errors
    ///
    /// This user may not, or `chrt` is missing.
    pub(super) fn take(self) -> Result<(), Error> {
        let (policy, level) = match self {
            Self::RealTime(level) => ("--fifo", level),
            Self::Ordinary => ("--other", 0),
            Self::Leftover => ("--idle", 0),
        };
        let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
        let output = Command::new(Tool::Chrt.find()?)
            .args([policy, "--pid", &level.to_string(), &thread])
            .env("LC_ALL", "C")
            .output()
            .doing(|| "start chrt".to_owned())?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Error::Peer(format!(
            "this user may not have threads at real-time priority, which stand for interrupts ({said}); \
             run it as root, or with the capability SYS_NICE and outside of a control group without \
             real-time share"
        )))
    }

    /// Whether a thread of this process can have it.
    ///
    /// # Errors
    ///
    /// It cannot, see [`Priority::take`].
    pub(super) fn check(self) -> Result<(), Error> {
        let tried = std::thread::spawn(move || self.take());
        tried.join().expect("trying does not panic")
    }
}
