//! How do two processes come to share a unix socket?

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::net::sockopt::{set_socket_send_buffer_size, socket_send_buffer_size};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen as listen_on,
    socket_with, socketpair,
};

use super::Boundaries;
use apus_testbed::error::{Doing, Error};

/// Something that accepts connections.
pub struct Place {
    /// The listening socket.
    pub listener: OwnedFd,
    /// Where clients reach it: its name is made of this.
    pub address: SocketAddr,
    /// Keeps others from taking the same name.
    pub _held: UdpSocket,
}

/// Holds an address of this host: as long as its socket is open nobody else has it, so that names made of it
/// belong to the holder alone. They end with the process, and belong to a network namespace as ports do.
pub fn hold_address() -> Result<(UdpSocket, SocketAddr), Error> {
    let any_port = (Ipv4Addr::LOCALHOST, 0);
    let held = UdpSocket::bind(any_port).doing(|| format!("bind {}", any_port.0))?;
    let address = held.local_addr().doing(|| "find out the port".to_owned())?;
    Ok((held, address))
}

/// Connections that wait to be accepted. Ours: more than the clients of any experiment.
const BACKLOG: i32 = 4096;

/// Listens under a name that nobody else has.
pub fn listen(boundaries: Boundaries) -> Result<Place, Error> {
    let (held, address) = hold_address()?;
    let listener = new(boundaries)?;
    bind(&listener, &name(address)?)
        .and_then(|()| listen_on(&listener, BACKLOG))
        .doing(|| format!("listen at the unix socket of {address}"))?;
    Ok(Place { listener, address, _held: held })
}

/// A connection to whoever listens under the name of `server`.
pub fn open(server: SocketAddr, boundaries: Boundaries) -> Result<OwnedFd, Error> {
    let stream = new(boundaries)?;
    connect(&stream, &name(server)?).doing(|| format!("connect to the unix socket of {server}"))?;
    enlarge(&stream, boundaries)?;
    Ok(stream)
}

/// Bytes of a stream's send buffer that are asked for, which the system doubles and cuts to its limit
/// (`net.core.wmem_max`); the module says why.
pub const STREAM_SEND_BUFFER: usize = 512 << 10;

/// Gives a connection the buffer that it is fastest with.
pub fn enlarge(stream: &OwnedFd, boundaries: Boundaries) -> Result<(), Error> {
    if boundaries == Boundaries::Kept {
        return Ok(());
    }
    set_socket_send_buffer_size(stream, STREAM_SEND_BUFFER).doing(|| "set SO_SNDBUF".to_owned())
}

/// Both ends of a connection.
pub fn pair(boundaries: Boundaries) -> Result<(OwnedFd, OwnedFd), Error> {
    socketpair(AddressFamily::UNIX, kind(boundaries), SocketFlags::CLOEXEC, None)
        .doing(|| "open a pair of unix sockets".to_owned())
}

/// Bytes of the longest packet that a socket takes as the system has it set up.
pub fn longest_packet() -> Result<usize, Error> {
    let buffer = socket_send_buffer_size(new(Boundaries::Kept)?);
    // What `unix_dgram_sendmsg` keeps for itself.
    Ok(buffer.doing(|| "ask for SO_SNDBUF".to_owned())?.saturating_sub(32))
}

/// An abstract name, which is in no file system.
fn name(address: SocketAddr) -> Result<SocketAddrUnix, Error> {
    let name = format!("apus-lab/{address}");
    SocketAddrUnix::new_abstract_name(name.as_bytes()).doing(|| format!("make the name {name}"))
}

const fn kind(boundaries: Boundaries) -> SocketType {
    match boundaries {
        Boundaries::Lost => SocketType::STREAM,
        Boundaries::Kept => SocketType::SEQPACKET,
    }
}

fn new(boundaries: Boundaries) -> Result<OwnedFd, Error> {
    socket_with(AddressFamily::UNIX, kind(boundaries), SocketFlags::CLOEXEC, None)
        .doing(|| "open a unix socket".to_owned())
}
