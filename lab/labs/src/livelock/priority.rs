//! Priorities of threads on a core.

use std::process::Command;

use apus_testbed::error::{Doing, Error};
use apus_testbed::fabric::Tool;

/// The urgency of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Priority {
    /// `SCHED_FIFO` at that level, 1 to 99: preempts all lower threads as soon as it has work, and
    /// is preempted by higher levels only.
    RealTime(u8),
    /// The default of programs.
    Ordinary,
    /// `SCHED_IDLE`: runs in time that no other thread uses.
    Leftover,
}

impl Priority {
    /// Gives the calling thread this priority, with the system's `chrt`: no safe library has the
    /// call.
    ///
    /// # Errors
    ///
    /// This user lacks the right, or `chrt` is missing.
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

    /// Checks that a thread of this process can have this priority.
    ///
    /// # Errors
    ///
    /// It cannot, see [`Priority::take`].
    pub(super) fn check(self) -> Result<(), Error> {
        let tried = std::thread::spawn(move || self.take());
        tried.join().expect("trying does not panic")
    }
}
