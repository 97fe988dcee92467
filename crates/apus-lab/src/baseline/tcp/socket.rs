//! How is a TCP connection set up?

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::sockopt::{
    set_socket_send_buffer_size, set_tcp_congestion, set_tcp_nodelay, tcp_congestion,
};
use rustix::net::{AddressFamily, SocketType, connect, socket};

use crate::baseline::wait::wake_on_stop;
use crate::error::{Doing, Error};
use crate::process::Stop;

/// Bytes of the send buffer that are asked for; the module says why.
const SEND_BUFFER: usize = 256 << 10;

/// Congestion controls that do not pace, the usual one first; the module says why.
const CONGESTION_CONTROLS: [&str; 2] = ["cubic", "reno"];

/// The settings in words.
pub(crate) fn settings() -> String {
    let congestion = new(AddressFamily::INET).and_then(|socket| {
        set_up(&socket)?;
        tcp_congestion(&socket).doing(|| "ask for the congestion control".to_owned())
    });
    let congestion = congestion.unwrap_or_else(|_| "unknown".to_owned());
    let buffer = SEND_BUFFER >> 10;
    format!("TCP_NODELAY, SO_SNDBUF {buffer} KiB, congestion control {congestion}")
}

/// Something that accepts connections on loopback, and its address.
pub(crate) fn listen() -> Result<(TcpListener, SocketAddr), Error> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .doing(|| format!("listen on {}", Ipv4Addr::LOCALHOST))?;
    set_up(&listener)?;
    let address = listener.local_addr().doing(|| "find out the port".to_owned())?;
    Ok((listener, address))
}

/// The next connection, or `None` once the server is to stop. The listener's settings are inherited.
pub(crate) fn accept(listener: &TcpListener, stop: &Stop) -> Result<Option<TcpStream>, Error> {
    wake_on_stop(listener, stop)?;
    match listener.accept() {
        _ if stop.is_asked() => Ok(None),
        accepted => Ok(Some(accepted.doing(|| "accept a connection".to_owned())?.0)),
    }
}

/// A connection to `server`.
pub(crate) fn open(server: SocketAddr) -> Result<OwnedFd, Error> {
    let family = if server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let stream = new(family)?;
    set_up(&stream)?;
    connect(&stream, &server).doing(|| format!("connect to {server}"))?;
    Ok(stream)
}

fn new(family: AddressFamily) -> Result<OwnedFd, Error> {
    socket(family, SocketType::STREAM, None).doing(|| "open a socket".to_owned())
}

/// Before the connection exists: the buffers' sizes decide which windows are offered.
fn set_up(socket: impl AsFd) -> Result<(), Error> {
    // Without privileges only some may be chosen. If none of these may, the system's has to do.
    let _ = CONGESTION_CONTROLS.iter().find(|name| set_tcp_congestion(&socket, name).is_ok());
    set_tcp_nodelay(&socket, true)
        .and_then(|()| set_socket_send_buffer_size(&socket, SEND_BUFFER))
        .doing(|| "set TCP_NODELAY and SO_SNDBUF".to_owned())
}
