//! Whose trace is it about, of the processes that live?

use apus::live::{Error, Process};
use clap::Args;

use crate::failure::Failure;
use crate::metrics::{about, pid, select};

/// Some of the processes of this user that have endpoints.
#[derive(Debug, Args)]
pub(super) struct Processes {
    /// The process; without it, the only one there is
    #[arg(value_name = "PID", conflicts_with = "all", value_parser = pid)]
    pid: Option<u32>,
    /// All processes of this user
    #[arg(long)]
    all: bool,
}

impl Processes {
    /// Whether there may be several.
    pub(super) const fn may_be_several(&self) -> bool {
        self.all
    }

    /// Asks each of them; `command` is what asks. Of several some may have ended meanwhile.
    ///
    /// # Errors
    ///
    /// There is none, or nobody said which one, or one does not answer.
    pub(super) fn ask<T>(
        &self,
        command: &str,
        question: impl Fn(&Process) -> Result<T, Error>,
    ) -> Result<Vec<(Process, T)>, Failure> {
        let processes = select(self.pid, self.all, command)?;
        let several = processes.len() > 1;
        let mut answers = Vec::new();
        for process in processes {
            match question(&process) {
                Ok(answer) => answers.push((process, answer)),
                Err(Error::Absent { .. }) if several => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(answers)
    }
}

/// How people know a process: its number, and if it still lives program and addresses.
pub(super) fn name(process: &Process) -> String {
    match process.snapshot() {
        Ok(snapshot) => format!("process {}, {}", process.pid(), about(&snapshot)),
        Err(_) => format!("process {}", process.pid()),
    }
}
