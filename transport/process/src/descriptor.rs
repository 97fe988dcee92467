//! Descriptors that a child of fork(2) closes.

use crate::open_files;
use crate::owner::Owner;
use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Has a descriptor closed in each child until this is dropped: before the descriptor is closed
/// here.
#[derive(Debug)]
#[must_use = "dropped, the descriptor stays open in children"]
pub struct ClosedInChildren {
    fd: RawFd,
    owner: Owner,
}

impl ClosedInChildren {
    /// Has `fd` closed in each child.
    pub fn new(fd: &impl AsRawFd) -> Self {
        let (owner, fd) = (Owner::current(), fd.as_raw_fd());
        open_files::add(fd);
        Self { fd, owner }
    }
}

impl Drop for ClosedInChildren {
    fn drop(&mut self) {
        if self.owner.is_current() {
            open_files::remove(self.fd);
        }
    }
}

/// A descriptor, or a socket, of one process. In each child it is closed at once, and not again on
/// drop.
pub struct Descriptor<S = OwnedFd> {
    socket: ManuallyDrop<S>,
    /// Dropped before the socket is.
    closed: ManuallyDrop<ClosedInChildren>,
}

impl<S: AsRawFd> Descriptor<S> {
    /// Takes over an open descriptor.
    pub fn new(socket: S) -> Self {
        let closed = ManuallyDrop::new(ClosedInChildren::new(&socket));
        Self { socket: ManuallyDrop::new(socket), closed }
    }
}

impl<S: AsFd> Descriptor<S> {
    /// Returns another descriptor of the same file.
    ///
    /// # Errors
    ///
    /// The system grants no descriptor.
    pub fn try_clone(&self) -> io::Result<Descriptor> {
        self.socket.as_fd().try_clone_to_owned().map(Descriptor::new)
    }
}

impl<S> Deref for Descriptor<S> {
    type Target = S;

    #[inline]
    fn deref(&self) -> &S {
        &self.socket
    }
}

impl<S: AsFd> AsFd for Descriptor<S> {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl<S: AsRawFd> AsRawFd for Descriptor<S> {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl<S> Drop for Descriptor<S> {
    fn drop(&mut self) {
        if !self.closed.owner.is_current() {
            return;
        }
        // SAFETY: Dropped once, here.
        unsafe { ManuallyDrop::drop(&mut self.closed) };
        // SAFETY: As above.
        unsafe { ManuallyDrop::drop(&mut self.socket) };
    }
}

impl<S: fmt::Debug> fmt::Debug for Descriptor<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
