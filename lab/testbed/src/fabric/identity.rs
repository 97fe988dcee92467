//! Process identity that survives reuse of process numbers: the number and the start time.

use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use apus_measure::error::{Doing, Error};

/// A process that was running when this value was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process number.
    pub pid: u32,
    /// Start time in clock ticks since boot: field 22 of `/proc/PID/stat`, proc(5).
    began: u64,
}

impl Process {
    /// Returns the identity of the process that has this number now.
    pub(super) fn of(pid: u32) -> Result<Self, Error> {
        let file = format!("/proc/{pid}/stat");
        let stat = fs::read_to_string(&file).doing(|| format!("read {file}"))?;
        let began = began(&stat).ok_or_else(|| Error::Peer(format!("{file}: it has ended")))?;
        Ok(Self { pid, began })
    }

    /// Returns whether the process is still running.
    #[must_use]
    pub fn is_alive(self) -> bool {
        Self::of(self.pid).is_ok_and(|now| now == self)
    }

    /// Kills the process and waits for its end. Another process that has its number by now is not
    /// affected.
    pub(super) fn end(self) -> Result<(), Error> {
        let doing = || format!("end process {}", self.pid);
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            return Ok(());
        };
        // A pidfd opened before the comparison keeps referring to the compared process, even if the
        // comparison takes long.
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(rustix::io::Errno::SRCH) => return Ok(()),
            Err(error) => return Err(error).doing(doing),
        };
        if !self.is_alive() {
            return Ok(());
        }
        match pidfd_send_signal(&handle, Signal::KILL) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => return Err(error).doing(doing),
        }
        let mut ends = [rustix::event::PollFd::new(&handle, rustix::event::PollFlags::IN)];
        rustix::io::retry_on_intr(|| rustix::event::poll(&mut ends, None)).doing(doing)?;
        Ok(())
    }
}

/// Parses field 22 of `/proc/PID/stat`; `None` for a zombie (exited but not reaped). The second
/// field is the program's name in parentheses, and the name may contain spaces and parentheses.
fn began(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_name_with_parentheses_is_parsed() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(began(stat), Some(4711));
        assert_eq!(began(&stat.replace(" S ", " Z ")), None, "it has ended");
        assert_eq!(began("7 (cat) S 1"), None);
    }

    #[test]
    fn a_process_is_ended_and_one_that_began_at_another_time_is_not() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = Process::of(child.id()).unwrap();
        let other = Process { began: process.began + 1, ..process };
        assert!(process.is_alive() && !other.is_alive());
        other.end().unwrap();
        assert_eq!(child.try_wait().unwrap(), None, "the child continues");
        process.end().unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(!process.is_alive());
        process.end().unwrap();
    }
}
