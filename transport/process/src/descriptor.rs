//! Descriptors that a child of fork(2) closes.
//!
//! An inherited socket keeps its port and its name in use, and hides the end of its owner from the
//! peer at the other end of a pair. So the handler of a fork closes all of them.

use crate::owner::Owner;
use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Descriptors of one word.
const BITS: usize = u64::BITS as usize;

/// Words of the table: 2^20 descriptors, which is `fs.nr_open` of Linux. A descriptor with a higher
/// number stays open in children.
const WORDS: usize = (1 << 20) / BITS;

/// The descriptors to close in a child. Untouched pages of it take no memory.
static OPEN: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// Words that have been used: a child reads no others.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Closes all descriptors of the table, in a child.
pub(crate) fn close_inherited() {
    for (index, word) in OPEN[..USED.load(Ordering::Acquire)].iter().enumerate() {
        let mut bits = word.swap(0, Ordering::AcqRel);
        while bits != 0 {
            let bit = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            // SAFETY: The number was of an `OwnedFd` of the parent, which is not used or dropped in
            // this process (PROCESS-2). If it is not open here, close(2) fails.
            unsafe { libc::close((index * BITS + bit) as RawFd) };
        }
    }
}

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
        if let Some((word, bit)) = place(fd) {
            USED.fetch_max(word + 1, Ordering::AcqRel);
            OPEN[word].fetch_or(bit, Ordering::AcqRel);
        }
        Self { fd, owner }
    }
}

impl Drop for ClosedInChildren {
    fn drop(&mut self) {
        if self.owner.is_current()
            && let Some((word, bit)) = place(self.fd)
        {
            OPEN[word].fetch_and(!bit, Ordering::AcqRel);
        }
    }
}

/// Returns the word and the bit of a descriptor.
fn place(fd: RawFd) -> Option<(usize, u64)> {
    let fd = usize::try_from(fd).ok()?;
    (fd / BITS < WORDS).then_some((fd / BITS, 1 << (fd % BITS)))
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
