//! Children of this program.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// How a child ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// As a program does: its exit handlers run.
    Exit,
    /// At once.
    Abandon,
}

/// A child of this process.
#[must_use = "wait for it"]
pub(crate) struct Child(libc::pid_t);

impl Child {
    /// Forks. The child runs `body`, and ends with status 0 if it returns.
    pub(crate) fn fork(end: End, body: impl FnOnce()) -> Self {
        // SAFETY: The child runs code that may allocate: glibc and musl keep their allocators
        // usable in a child. Other locks of std are not held by the threads of this program while
        // it forks.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "fork fails");
        if child != 0 {
            return Self(child);
        }
        let body = std::panic::AssertUnwindSafe(body);
        let status = i32::from(std::panic::catch_unwind(body).is_err());
        match end {
            // SAFETY: Neither call has memory of this program as an argument.
            End::Exit => unsafe { libc::exit(status) },
            // SAFETY: As above.
            End::Abandon => unsafe { libc::_exit(status) },
        }
    }

    /// Waits until it has ended, and asserts that its body returned.
    pub(crate) fn join(self) {
        let mut status = 0;
        // SAFETY: `status` is valid for the call.
        assert_eq!(unsafe { libc::waitpid(self.0, &raw mut status, 0) }, self.0);
        assert_eq!(status, 0, "the child failed");
    }

    /// Kills it.
    pub(crate) fn kill(self) {
        // SAFETY: The calls concern a child that was not waited for.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
        let mut status = 0;
        // SAFETY: As above; `status` is valid for the call.
        unsafe { libc::waitpid(self.0, &raw mut status, 0) };
    }
}

/// A line to the parent of several processes.
pub(crate) struct Line(UnixStream, UnixStream);

impl Line {
    pub(crate) fn new() -> Self {
        let (here, there) = UnixStream::pair().unwrap();
        Self(here, there)
    }

    pub(crate) fn send(&self, text: &str) {
        (&self.1).write_all(format!("{text:64}").as_bytes()).unwrap();
    }

    pub(crate) fn receive(&self) -> String {
        let mut text = [0; 64];
        (&self.0).read_exact(&mut text).unwrap();
        String::from_utf8_lossy(&text).trim().to_owned()
    }
}
