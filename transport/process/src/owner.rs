//! The process that a value belongs to.

use crate::fork;

/// The process that a value belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Number of the process among its ancestors that used this crate, starting with 1.
    generation: u64,
    pid: u32,
    /// Whether a fork is recognised by the process id, since the system wipes no page.
    by_pid: bool,
}

/// A value belongs to a process that has forked this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it was opened by process {pid}, before a fork: open one in this process")]
pub struct ForeignProcess {
    /// The process that opened it.
    pub pid: u32,
}

impl Owner {
    /// Returns the calling process.
    #[must_use]
    pub fn current() -> Self {
        let (generation, by_pid) = fork::begin_generation();
        Self { generation, pid: std::process::id(), by_pid }
    }

    /// Returns whether the caller is in this process, as opposed to a process that it has forked.
    #[inline]
    #[must_use]
    pub fn is_current(self) -> bool {
        fork::generation() == self.generation && (!self.by_pid || self.pid == std::process::id())
    }

    /// Checks that the caller is in this process.
    ///
    /// # Errors
    ///
    /// [`ForeignProcess`]: the caller is in a process that this one has forked.
    #[inline]
    pub fn check(self) -> Result<(), ForeignProcess> {
        if self.is_current() { Ok(()) } else { Err(ForeignProcess { pid: self.pid }) }
    }
}
