//! The device: whole messages in, whole messages out.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::codec::Message;

/// The device of one connection, non-blocking.
#[derive(Debug)]
pub(crate) struct Device(OwnedFd);

impl Device {
    /// Takes a descriptor and makes it non-blocking.
    pub(crate) fn new(fd: OwnedFd) -> Result<Self, Errno> {
        let flags = rustix::fs::fcntl_getfl(&fd)?;
        if !flags.contains(OFlags::NONBLOCK) {
            rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
        }
        Ok(Self(fd))
    }

    /// Reads one message; `None` if no message is pending.
    #[inline]
    pub(crate) fn read(&self, buffer: &mut [u8]) -> Result<Option<usize>, Errno> {
        loop {
            match rustix::io::read(&self.0, &mut *buffer) {
                Ok(length) => return Ok(Some(length)),
                Err(Errno::AGAIN) => return Ok(None),
                // ENOENT: the request was withdrawn while it was read (fs/fuse/dev.c
                // fuse_dev_do_read).
                Err(Errno::INTR | Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes one message.
    #[inline]
    pub(crate) fn write(&self, message: &Message<'_>) -> Result<(), Errno> {
        let pieces = message.pieces();
        rustix::io::retry_on_intr(|| rustix::io::writev(&self.0, &pieces))?;
        Ok(())
    }

    /// Sleeps until a message can be read or the connection ends; false after `timeout`, or if a
    /// signal arrived.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> Result<bool, Errno> {
        // A timeout beyond the kernel's range means no timeout.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
