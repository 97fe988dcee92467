//! Families: a process and its descendants.
//!
//! sshd gives each connection a process in a separate group, and sshfs leaves its ssh behind if the
//! network does not last until an orderly end.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

/// The leader of a process group, whose end was not waited for, and all children at the time of
/// this value's creation.
#[derive(Debug)]
pub(super) struct Family {
    leader: Pid,
    /// Other processes can have their numbers by now, but not their descriptors.
    descendants: Vec<OwnedFd>,
}

impl Family {
    /// Returns a process, its children and theirs.
    pub(super) fn of(leader: Pid) -> Self {
        Self { leader, descendants: descendants(leader) }
    }

    /// Kills them.
    pub(super) fn kill(self) {
        // Each fails if no process is left to kill.
        let _ = kill_process_group(self.leader, Signal::KILL);
        for process in self.descendants {
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }
}

fn descendants(process: Pid) -> Vec<OwnedFd> {
    let file = format!("/proc/{process}/task/{process}/children");
    let children = fs::read_to_string(file).unwrap_or_default();
    let mut found = Vec::new();
    for child in children.split(' ').filter_map(|id| Pid::from_raw(id.parse().ok()?)) {
        found.extend(pidfd_open(child, PidfdFlags::empty()));
        found.extend(descendants(child));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    /// The end of the pipe shows that no process is left that could write to it: neither the
    /// leader, nor its child, nor a process in its own session.
    #[test]
    fn all_are_killed() {
        let script = "sleep 1000 & setsid sleep 1000 & echo ready; cat";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let mut line = [0; 6];
        output.read_exact(&mut line).unwrap();
        let _input = child.stdin.take();
        Family::of(Pid::from_child(&child)).kill();
        assert_eq!(output.read_to_end(&mut Vec::new()).unwrap(), 0);
        child.wait().unwrap();
    }
}
