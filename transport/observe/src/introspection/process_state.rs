//! The state of a process, as the system reports it.

use crate::introspection::folder;
use std::fs;

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessState {
    /// It runs, sleeps, or its state is not visible.
    Running,
    /// It does not run until it is continued: a signal or a debugger has stopped it, or its control
    /// group is frozen.
    Stopped,
    /// It does not exist, or only its exit status is left.
    Ended,
}

impl ProcessState {
    /// Returns the state of the process with this id.
    pub(crate) fn of(pid: u32) -> Self {
        if !folder::is_alive(pid) {
            return Self::Ended;
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name before the state may contain any character.
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        match state {
            Some('T' | 't') => Self::Stopped,
            Some('Z' | 'X') => Self::Ended,
            _ => Self::Running,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, Signal, kill_process};
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_runs_is_stopped_and_ends() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert_eq!(ProcessState::of(child.id()), ProcessState::Running);
        kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
        while ProcessState::of(child.id()) != ProcessState::Stopped {
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        // The exit status is left until it is read.
        while ProcessState::of(child.id()) != ProcessState::Ended {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert_eq!(ProcessState::of(child.id()), ProcessState::Ended);
        assert_eq!(ProcessState::of(u32::MAX), ProcessState::Ended);
    }
}
