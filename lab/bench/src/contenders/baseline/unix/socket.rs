//! Unix sockets that two processes find by an address of the host.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::net::sockopt::{set_socket_send_buffer_size, socket_send_buffer_size};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen as listen_on,
    socket_with, socketpair,
};

use apus_testbed::error::{Doing, Error};

/// Kind of a unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnixKind {
    /// SOCK_STREAM, without message kind.
    Stream,
    /// SOCK_SEQPACKET, with message kind.
    Seqpacket,
}

/// A listening socket.
pub struct UnixListener {
    /// The socket.
    pub listener: OwnedFd,
    /// Address that clients derive the socket's name from.
    pub address: SocketAddr,
    /// Keeps other processes from using the same name.
    pub _reserved: UdpSocket,
}

/// Reserves an address of this host. While the socket is open, no other process can have the
/// address, so names derived from it are unique to this process. These names disappear with the
/// process, and are local to a network namespace, like ports.
pub fn reserve_address() -> Result<(UdpSocket, SocketAddr), Error> {
    let any_port = (Ipv4Addr::LOCALHOST, 0);
    let reserved = UdpSocket::bind(any_port).doing(|| format!("bind {}", any_port.0))?;
    let address = reserved.local_addr().doing(|| "find out the port".to_owned())?;
    Ok((reserved, address))
}

/// Maximum connections waiting for `accept`. Chosen by us: more than the clients of any experiment.
const BACKLOG: i32 = 4096;

/// Listens under a name that no other process has.
pub fn listen(kind: UnixKind) -> Result<UnixListener, Error> {
    let (reserved, address) = reserve_address()?;
    let listener = new(kind)?;
    bind(&listener, &name(address)?)
        .and_then(|()| listen_on(&listener, BACKLOG))
        .doing(|| format!("listen at the unix socket of {address}"))?;
    Ok(UnixListener { listener, address, _reserved: reserved })
}

/// Connects to the listener with the name of `server`.
pub fn open(server: SocketAddr, kind: UnixKind) -> Result<OwnedFd, Error> {
    let stream = new(kind)?;
    connect(&stream, &name(server)?).doing(|| format!("connect to the unix socket of {server}"))?;
    enlarge(&stream, kind)?;
    Ok(stream)
}

/// Requested send buffer of a stream in bytes. The system doubles it and reduces it to its limit
/// (`net.core.wmem_max`); the module head explains the value.
pub const STREAM_SEND_BUFFER: usize = 512 << 10;

/// Sets the send buffer to the fastest size.
pub fn enlarge(stream: &OwnedFd, kind: UnixKind) -> Result<(), Error> {
    if kind == UnixKind::Seqpacket {
        return Ok(());
    }
    set_socket_send_buffer_size(stream, STREAM_SEND_BUFFER).doing(|| "set SO_SNDBUF".to_owned())
}

/// Returns both ends of a connection.
pub fn pair(kind: UnixKind) -> Result<(OwnedFd, OwnedFd), Error> {
    socketpair(AddressFamily::UNIX, socket_type(kind), SocketFlags::CLOEXEC, None)
        .doing(|| "open a pair of unix sockets".to_owned())
}

/// Returns the length of the longest packet that a socket accepts with the system's settings.
pub fn longest_packet() -> Result<usize, Error> {
    let buffer = socket_send_buffer_size(new(UnixKind::Seqpacket)?);
    // `unix_dgram_sendmsg` reserves these bytes.
    Ok(buffer.doing(|| "ask for SO_SNDBUF".to_owned())?.saturating_sub(32))
}

/// Returns an abstract name, independent of the file system.
fn name(address: SocketAddr) -> Result<SocketAddrUnix, Error> {
    let name = format!("apus-bench/{address}");
    SocketAddrUnix::new_abstract_name(name.as_bytes()).doing(|| format!("make the name {name}"))
}

const fn socket_type(kind: UnixKind) -> SocketType {
    match kind {
        UnixKind::Stream => SocketType::STREAM,
        UnixKind::Seqpacket => SocketType::SEQPACKET,
    }
}

fn new(kind: UnixKind) -> Result<OwnedFd, Error> {
    socket_with(AddressFamily::UNIX, socket_type(kind), SocketFlags::CLOEXEC, None)
        .doing(|| "open a unix socket".to_owned())
}
