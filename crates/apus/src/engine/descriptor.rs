//! How does a task sleep on a descriptor?
//!
//! The only unsafe code of this crate: the runtime wants a promise about the descriptor's life.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers a descriptor with the runtime, for reading.
///
/// # Errors
///
/// The system refuses.
///
/// # Panics
///
/// Outside of a tokio runtime with IO enabled.
pub(super) fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: `fd` is open, and owned by the `AsyncFd` from here on, which gives it out only behind a
    // shared reference: nobody can close it or put another file under its number, and an `OwnedFd`
    // always has the same number.
    let registered = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
    registered.map_err(io::Error::from)
}
