//! TCP sockets and their options.

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

/// Requested send buffer in bytes; the module head has the reason.
pub const LOOPBACK_SEND_BUFFER: usize = 256 << 10;

/// Congestion controls without pacing, the default first; the module head explains why.
const CONGESTION_CONTROLS: [&str; 2] = ["cubic", "reno"];

/// Connection options that vary between experiments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Congestion control; `None` uses the first available one without pacing.
    pub(crate) congestion: Option<String>,
    /// Send buffer in bytes; `None` leaves the tuning to the system.
    pub(crate) send_buffer: Option<usize>,
}

impl Settings {
    /// Settings for loopback; the module head has the reason.
    pub const LOOPBACK: Self = Self { congestion: None, send_buffer: Some(LOOPBACK_SEND_BUFFER) };

    /// Returns the congestion control that a socket of this process has with these settings.
    fn congestion_in_use(&self) -> Result<String, Error> {
        let socket = new(AddressFamily::INET)?;
        self.apply(&socket)?;
        tcp_congestion(&socket).doing(|| "ask for the congestion control".to_owned())
    }

    /// Returns why sockets of this process lack the intended default congestion control; `None` if
    /// they have it, or if another one was requested.
    pub(crate) fn caveat(&self) -> Option<String> {
        let intended = CONGESTION_CONTROLS[0];
        if self.congestion.is_some() {
            return None;
        }
        let used = self.congestion_in_use().ok().filter(|used| used != intended)?;
        let why = if offered_controls().iter().any(|each| each == intended) {
            "this process may not choose it (net.ipv4.tcp_allowed_congestion_control, tcp(7))"
        } else {
            "this kernel does not offer it (`modprobe tcp_cubic` as root loads it)"
        };
        Some(format!("the congestion control is {used} and not {intended}: {why}"))
    }

    /// Applied before the connection exists: the buffer sizes determine the advertised windows.
    fn apply(&self, socket: impl AsFd) -> Result<(), Error> {
        if let Some(wanted) = &self.congestion {
            set_tcp_congestion(&socket, wanted)
                .doing(|| format!("choose the congestion control {wanted}"))?;
        } else {
            // An unprivileged process may choose only some congestion controls. If both are
            // forbidden, the system's default remains.
            let _ =
                CONGESTION_CONTROLS.iter().find(|name| set_tcp_congestion(&socket, name).is_ok());
        }
        set_tcp_nodelay(&socket, true).doing(|| "set TCP_NODELAY".to_owned())?;
        let Some(bytes) = self.send_buffer else { return Ok(()) };
        set_socket_send_buffer_size(&socket, bytes).doing(|| "set SO_SNDBUF".to_owned())
    }
}

/// Formats the settings in words.
impl fmt::Display for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let congestion = self.congestion_in_use().unwrap_or_else(|_| "unknown".to_owned());
        formatter.write_str("TCP_NODELAY, ")?;
        match self.send_buffer {
            Some(bytes) => write!(formatter, "SO_SNDBUF {} KiB", bytes >> 10)?,
            None => formatter.write_str("buffers tuned by the system")?,
        }
        write!(formatter, ", congestion control {congestion}")
    }
}

/// Returns the congestion controls that this kernel offers.
pub(crate) fn offered_controls() -> Vec<String> {
    let offered = fs::read_to_string(OFFERED_CONTROLS).unwrap_or_default();
    offered.split_whitespace().map(str::to_owned).collect()
}

/// List of congestion controls: tcp(7), `tcp_available_congestion_control`.
const OFFERED_CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Opens a listener at any port of `at`, and returns its address.
pub fn listen_at(at: IpAddr, settings: &Settings) -> Result<(TcpListener, SocketAddr), Error> {
    let listener = listener(SocketAddr::from((at, 0)), settings)?;
    let address = listener.local_addr().doing(|| "find out the port".to_owned())?;
    Ok((listener, address))
}

/// Opens an additional listener at the same address: the system distributes connections over the
/// listeners.
pub(crate) fn listen_too(address: SocketAddr, settings: &Settings) -> Result<TcpListener, Error> {
    listener(address, settings)
}

/// Maximum connections waiting for `accept`. Chosen by us: more than a cluster opens
/// simultaneously.
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

/// Connects to `server`.
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
