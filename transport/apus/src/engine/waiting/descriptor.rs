//! Descriptors that a task sleeps on.
//!
//! The only unsafe code of this crate: the runtime needs a promise about the descriptor's lifetime.

#![allow(unsafe_code)]

use apus_process::Descriptor;
use std::io;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Conditions that a task waits for: data to read, or an entry in a socket's queue of errors, which
/// the system does not call readable.
pub(crate) const ARRIVAL: Interest = Interest::READABLE.add(Interest::ERROR);

/// Registers a descriptor with the runtime, for [`ARRIVAL`].
///
/// # Errors
///
/// The system refuses.
///
/// # Panics
///
/// Outside of a tokio runtime with IO enabled.
pub(crate) fn readable(fd: Descriptor) -> io::Result<AsyncFd<Descriptor>> {
    // SAFETY: `fd` is open, and owned by the `AsyncFd` from here on, which lends it only behind a
    // shared reference: no code can close it or put another file under its number, and a
    // `Descriptor` always has the same number. A child of a fork closes it at once, and then the
    // runtime's system calls for this number fail in the child or concern no event of the parent.
    let registered = unsafe { AsyncFd::register_with_interest(fd, ARRIVAL) };
    registered.map_err(io::Error::from)
}
