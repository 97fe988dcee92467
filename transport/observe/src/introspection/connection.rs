//! Connections to the sockets of processes.

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Connects to a socket without waiting. The connection does not block either.
///
/// # Errors
///
/// `WouldBlock`: its queue is full, so a process listens and does not accept.
pub(super) fn open(socket: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&stream, &SocketAddrUnix::new(socket)?)?;
    Ok(UnixStream::from(stream))
}

/// Returns whether this process, or the system, has no descriptors left.
pub(super) fn is_descriptor_limit(error: &io::Error) -> bool {
    let limits = [Errno::MFILE, Errno::NFILE];
    limits.iter().any(|limit| error.raw_os_error() == Some(limit.raw_os_error()))
}
