//! How are unix sockets made, and what goes over them?
//!
//! One stream socket per pair. It carries the greeting and the answer, then single bytes that wake a side which
//! sleeps on it, and it says when the peer has gone. All calls are non-blocking per call, on this side's own
//! end: nothing that a peer does to its end can make them wait.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType,
};

use crate::error::ConnectError;
use crate::name::PeerName;

/// Newcomers that may wait to be accepted.
const BACKLOG: i32 = 64;

const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

fn open() -> Result<OwnedFd, ConnectError> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(ConnectError::system("open a unix socket"))
}

/// A socket that listens under `name`.
pub(crate) fn listen(name: &PeerName) -> Result<OwnedFd, ConnectError> {
    let socket = open()?;
    rustix::net::bind(&socket, &name.address()?)
        .map_err(ConnectError::system("bind the name for local peers"))?;
    rustix::net::listen(&socket, BACKLOG)
        .map_err(ConnectError::system("listen for local peers"))?;
    Ok(socket)
}

/// A socket connected to whoever listens under `name`.
pub(crate) fn connect(name: &PeerName) -> Result<OwnedFd, ConnectError> {
    let socket = open()?;
    match rustix::net::connect(&socket, &name.address()?) {
        Ok(()) => Ok(socket),
        Err(Errno::CONNREFUSED) => Err(ConnectError::NobodyListens),
        Err(Errno::AGAIN) => Err(ConnectError::Busy),
        Err(errno) => Err(ConnectError::system("connect to a local peer")(errno)),
    }
}

/// Who waits to be accepted, if anybody.
pub(crate) fn accept(listener: BorrowedFd<'_>) -> Result<Option<OwnedFd>, Errno> {
    match rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
        Ok(socket) => Ok(Some(socket)),
        // Whoever waited has gone again.
        Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Says `bytes`, and hands `file` over if there is one.
pub(crate) fn say(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    file: Option<BorrowedFd<'_>>,
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files: Vec<_> = file.into_iter().collect();
    if !files.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(&files)), "there is space for one");
    }
    let sent = rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SEND)?;
    // A few bytes into an empty socket: they fit.
    if sent == bytes.len() { Ok(()) } else { Err(Errno::MSGSIZE) }
}

/// What was said, and the file that was handed over. `None` if nothing yet.
pub(crate) fn hear(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
) -> Result<Option<(usize, Option<OwnedFd>)>, Errno> {
    // Space for two files: of more than one, none is taken.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let heard =
        match rustix::net::recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, flags) {
            Ok(heard) => heard,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(errno) => return Err(errno),
        };
    let mut files = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            files.extend(rights);
        }
    }
    let file = if files.len() == 1 { files.pop() } else { None };
    Ok(Some((heard.bytes, file)))
}

/// Wakes whoever sleeps on the other end. Fails only if the peer has gone, or has not looked at many
/// bytes before this one, and will look then.
pub(crate) fn ring(socket: BorrowedFd<'_>) {
    let _ = rustix::net::send(socket, &[1], SEND);
}

/// Takes the bytes that have woken this side; whether the peer has gone.
pub(crate) fn drain(socket: BorrowedFd<'_>) -> bool {
    let mut bytes = [0_u8; 256];
    // As often as a hostile peer can make it: once.
    match rustix::net::recv(socket, &mut bytes, RecvFlags::DONTWAIT) {
        Ok((0, _)) => true,
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => false,
        Err(_) => true,
    }
}

/// Ends the connection in both directions, whoever else holds the descriptor.
pub(crate) fn shut_down(socket: BorrowedFd<'_>) {
    let _ = rustix::net::shutdown(socket, Shutdown::Both);
}

/// Whether the peer has gone. Does not take anything.
pub(crate) fn has_hung_up(socket: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(socket, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Waits until something was said, or `time` is over.
pub(crate) fn wait(socket: impl AsFd, time: std::time::Duration) -> Result<(), Errno> {
    let mut fds = [PollFd::new(&socket, PollFlags::IN)];
    let time = Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    match rustix::event::poll(&mut fds, Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}
