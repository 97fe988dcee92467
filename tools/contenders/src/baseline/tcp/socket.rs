//! How is a TCP connection set up?

use std::fmt;
use std::fs;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::sockopt::{
    set_socket_reuseport, set_socket_send_buffer_size, set_tcp_congestion, set_tcp_nodelay,
    tcp_congestion,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, listen, socket_with};

use apus_testbed::error::{Doing, Error};

/// Bytes of the send buffer that are asked for; the module says why.
pub const LOOPBACK_SEND_BUFFER: usize = 256 << 10;

/// Congestion controls that do not pace, the usual one first; the module says why.
const CONGESTION_CONTROLS: [&str; 2] = ["cubic", "reno"];

/// Settings of a connection that experiments differ in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The congestion control; `None` takes the usual one that does not pace.
    pub(crate) congestion: Option<String>,
    /// Bytes of the send buffer; `None` lets the system tune it.
    pub(crate) send_buffer: Option<usize>,
}

impl Settings {
    /// For loopback; the module says why.
    pub const LOOPBACK: Self = Self { congestion: None, send_buffer: Some(LOOPBACK_SEND_BUFFER) };

    /// Before the connection exists: the buffers' sizes decide which windows are offered.
    fn apply(&self, socket: impl AsFd) -> Result<(), Error> {
        if let Some(wanted) = &self.congestion {
            set_tcp_congestion(&socket, wanted)
                .doing(|| format!("choose the congestion control {wanted}"))?;
        } else {
            // Without privileges only some may be chosen. If none of these may, the system's has to do.
            let _ =
                CONGESTION_CONTROLS.iter().find(|name| set_tcp_congestion(&socket, name).is_ok());
        }
        set_tcp_nodelay(&socket, true).doing(|| "set TCP_NODELAY".to_owned())?;
        let Some(bytes) = self.send_buffer else { return Ok(()) };
        set_socket_send_buffer_size(&socket, bytes).doing(|| "set SO_SNDBUF".to_owned())
    }
}

/// The settings in words.
impl fmt::Display for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let congestion = new(AddressFamily::INET).and_then(|socket| {
            self.apply(&socket)?;
            tcp_congestion(&socket).doing(|| "ask for the congestion control".to_owned())
        });
        let congestion = congestion.unwrap_or_else(|_| "unknown".to_owned());
        formatter.write_str("TCP_NODELAY, ")?;
        match self.send_buffer {
            Some(bytes) => write!(formatter, "SO_SNDBUF {} KiB", bytes >> 10)?,
            None => formatter.write_str("buffers tuned by the system")?,
        }
        write!(formatter, ", congestion control {congestion}")
    }
}

/// The congestion controls that this kernel offers.
pub(crate) fn offered_controls() -> Vec<String> {
    let offered = fs::read_to_string(OFFERED_CONTROLS).unwrap_or_default();
    offered.split_whitespace().map(str::to_owned).collect()
}

/// Where Linux lists them: tcp(7), `tcp_available_congestion_control`.
const OFFERED_CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Something that accepts connections at `at`, and its address.
pub fn listen_at(at: IpAddr, settings: &Settings) -> Result<(TcpListener, SocketAddr), Error> {
    let listener = listener(SocketAddr::from((at, 0)), settings)?;
    let address = listener.local_addr().doing(|| "find out the port".to_owned())?;
    Ok((listener, address))
}

/// Another listener at an address that has one already: the system spreads connections over them.
pub(crate) fn listen_too(address: SocketAddr, settings: &Settings) -> Result<TcpListener, Error> {
    listener(address, settings)
}

/// Connections that wait to be accepted. Ours: more than all that a cluster opens at once.
const BACKLOG: i32 = 4096;

fn listener(address: SocketAddr, settings: &Settings) -> Result<TcpListener, Error> {
    let socket = of_family(address)?;
    settings.apply(&socket)?;
    set_socket_reuseport(&socket, true)
        .and_then(|()| bind(&socket, &address))
        .and_then(|()| listen(&socket, BACKLOG))
        .doing(|| format!("listen at {address}"))?;
    Ok(socket.into())
}

/// A connection to `server`.
pub fn open(server: SocketAddr, settings: &Settings) -> Result<OwnedFd, Error> {
    let stream = of_family(server)?;
    settings.apply(&stream)?;
    connect(&stream, &server).doing(|| format!("connect to {server}"))?;
    Ok(stream)
}

fn of_family(address: SocketAddr) -> Result<OwnedFd, Error> {
    new(if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 })
}

fn new(family: AddressFamily) -> Result<OwnedFd, Error> {
    socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .doing(|| "open a socket".to_owned())
}
