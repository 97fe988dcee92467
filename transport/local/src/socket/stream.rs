//! Unix sockets of pairs.
//!
//! Each pair has one stream socket. It carries hello and reply, then single bytes that wake a side
//! that sleeps on the socket, and its end of file reports the end of the peer. Every call is
//! non-blocking on this side's own end, so a peer cannot make this side wait.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use apus_process::Descriptor;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType,
};

use super::peer_name::PeerName;
use crate::error::ConnectError;

/// Clients that may wait to be accepted.
const BACKLOG: i32 = 64;

const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

fn open() -> Result<Descriptor, ConnectError> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map(Descriptor::new)
        .map_err(ConnectError::system("open a unix socket"))
}

/// Returns a socket that listens under `name`.
pub(crate) fn listen(name: &PeerName) -> Result<Descriptor, ConnectError> {
    let socket = open()?;
    rustix::net::bind(&socket, &name.address()?)
        .map_err(ConnectError::system("bind the name for local peers"))?;
    rustix::net::listen(&socket, BACKLOG)
        .map_err(ConnectError::system("listen for local peers"))?;
    Ok(socket)
}

/// Returns a socket that is connected to the process that listens under `name`.
pub(crate) fn connect(name: &PeerName) -> Result<Descriptor, ConnectError> {
    let socket = open()?;
    match rustix::net::connect(&socket, &name.address()?) {
        Ok(()) => Ok(socket),
        Err(Errno::CONNREFUSED) => Err(ConnectError::NotListening),
        Err(Errno::AGAIN) => Err(ConnectError::Busy),
        Err(errno) => Err(ConnectError::system("connect to a local peer")(errno)),
    }
}

/// Accepts the next connection, if any.
pub(crate) fn accept(listener: BorrowedFd<'_>) -> Result<Option<Descriptor>, Errno> {
    match rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
        Ok(socket) => Ok(Some(Descriptor::new(socket))),
        // The client has disconnected again.
        Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Sends `bytes`, and hands `file` over if there is one.
pub(crate) fn send_hello(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    file: Option<BorrowedFd<'_>>,
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files: Vec<_> = file.into_iter().collect();
    if !files.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(&files)), "space for one file");
    }
    let sent = rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SEND)?;
    // The socket buffer is empty, so a few bytes fit.
    if sent == bytes.len() { Ok(()) } else { Err(Errno::MSGSIZE) }
}

/// Receives a hello or a reply, and the file handed over with it. `None` if neither has arrived.
pub(crate) fn recv_hello(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
) -> Result<Option<(usize, Option<OwnedFd>)>, Errno> {
    // Space for two files: a sender of more than one is detected, and none of its files is used.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received =
        match rustix::net::recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, flags) {
            Ok(received) => received,
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
    Ok(Some((received.bytes, file)))
}

/// Wakes the thread that sleeps on the other end. Fails only if the peer has gone, or has not read
/// many bytes sent before; in the second case it is awake or about to wake up.
pub(crate) fn signal(socket: BorrowedFd<'_>) {
    let _ = rustix::net::send(socket, &[1], SEND);
}

/// Reads the bytes that have woken this side. Returns whether the peer has gone.
pub(crate) fn drain(socket: BorrowedFd<'_>) -> bool {
    let mut bytes = [0_u8; 256];
    // One read is enough, and bounds the work that a hostile peer can cause.
    match rustix::net::recv(socket, &mut bytes, RecvFlags::DONTWAIT) {
        Ok((0, _)) => true,
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => false,
        Err(_) => true,
    }
}

/// Returns whether `socket` has no unread bytes: its peer has neither sent anything nor ended.
pub(crate) fn is_silent(socket: BorrowedFd<'_>) -> bool {
    let received = rustix::net::recv(socket, &mut [0_u8; 1][..], RecvFlags::DONTWAIT);
    matches!(received, Err(Errno::AGAIN | Errno::INTR))
}

/// Ends the connection in both directions, also for other holders of the descriptor.
pub(crate) fn shut_down(socket: BorrowedFd<'_>) {
    let _ = rustix::net::shutdown(socket, Shutdown::Both);
}

/// Returns whether the peer has ended. Does not read from the socket.
pub(crate) fn has_hung_up(socket: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(socket, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Waits until the socket is readable or `time` has passed.
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
