//! Alert: a descriptor that is readable while it is raised.

use apus_process::Descriptor;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::time::Timespec;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::task::Wake;
use std::time::{Duration, Instant};

/// An eventfd as the waker of a future.
#[derive(Debug)]
pub(crate) struct Alert {
    fd: Descriptor,
}

impl Alert {
    /// Creates a raised alert.
    ///
    /// # Errors
    ///
    /// The system grants no descriptor.
    pub(crate) fn raised() -> io::Result<Self> {
        let fd = eventfd(1, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { fd: Descriptor::new(fd) })
    }

    /// Makes the descriptor readable.
    pub(crate) fn raise(&self) {
        // Fails only if the counter is at its maximum; the descriptor is readable then.
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable. Check the cause of the alert after this call, not before;
    /// otherwise a raise in between is lost.
    pub(crate) fn lower(&self) {
        // Fails only if the alert was not raised.
        let _ = rustix::io::read(&self.fd, &mut [0; 8]);
    }

    /// Waits until the alert is raised, but not beyond `until`.
    pub(crate) fn wait(&self, until: Option<Instant>) {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        // An interrupted wait ends early: the caller checks again.
        let _ = poll(&mut fds, left.map(timespec).as_ref());
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}

impl AsFd for Alert {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Wake for Alert {
    fn wake(self: Arc<Self>) {
        self.raise();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.raise();
    }
}
