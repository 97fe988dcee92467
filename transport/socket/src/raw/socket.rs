//! Raw sockets: opening and binding.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use crate::address::{Family, canonical, is_wildcard};
use crate::kernel::set_option;
use crate::mtu::MINIMUM;
use crate::open::{forbid_fragments, size_buffers};
use rustix::io::Errno;
use rustix::net::sockopt;
use socket2::{Domain, Protocol, Socket, Type};

use crate::raw::config::RawConfig;
use crate::raw::error::RawOpenError;
use crate::raw::filter;
use crate::raw::ids::IdRange;
use crate::raw::port::Port;

/// Homa's protocol number. Source: IANA; docs/reference/homa-module.md, *Packet types*.
const HOMA: i32 = 146;

/// A bound socket with its reservations.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) socket: Socket,
    pub(crate) family: Family,
    /// The local address, with the Homa port.
    pub(crate) local: SocketAddr,
    /// Whether the socket listens on all addresses of the host.
    pub(crate) any: bool,
    pub(crate) priorities: bool,
    pub(crate) ecn: bool,
    pub(crate) reports: bool,
    /// Bytes of the granted receive buffer.
    pub(crate) receive_buffer: usize,
    pub(crate) port: Port,
    pub(crate) ids: IdRange,
}

/// Opens and binds a socket with these settings.
pub(crate) fn open(config: &RawConfig) -> Result<Opened, RawOpenError> {
    let bind = canonical(config.bind);
    let failed = |operation| move |source| system(operation, bind, source);
    if !(MINIMUM..=usize::from(u16::MAX)).contains(&config.max_ip_packet) {
        let text = format!("max_ip_packet is {}, not 1280 to 65535", config.max_ip_packet);
        let source = io::Error::new(io::ErrorKind::InvalidInput, text);
        return Err(system("open", bind, source));
    }
    let family = Family::of(bind);
    let socket = new_socket(family).map_err(|error| not_opened(bind, error))?;
    let port = reserve(bind, family)?;
    let ids = IdRange::reserve().map_err(failed("reserve ids for"))?;
    let ids = ids.ok_or(RawOpenError::TooManyEndpoints { address: bind })?;
    // The filter is attached before the socket is bound: packets arrive from then on.
    let program = filter::for_port(port.number, family);
    socket.attach_filter(&program).map_err(failed("filter the packets for"))?;
    size_buffers(&socket, config.receive_buffer, config.send_buffer);
    forbid_fragments(&socket, family).map_err(failed("forbid fragments on"))?;
    let any = is_wildcard(bind.ip());
    let on = |level, name| set_option(socket.as_fd(), level, name, 1).is_ok();
    // Best effort: the count of overflowed packets is only diagnostic.
    on(libc::SOL_SOCKET, libc::SO_RXQ_OVFL);
    let (ecn, priorities, reports) = match family {
        // Congestion mark and destination are in the IP header, which raw IPv4 sockets receive.
        Family::V4 => (
            true,
            config.priorities && sockopt::set_ip_tos(&socket, 0).is_ok(),
            config.reports && on(libc::IPPROTO_IP, libc::IP_RECVERR),
        ),
        Family::V6 => {
            if any {
                on(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO);
            }
            (
                sockopt::set_ipv6_recvtclass(&socket, true).is_ok(),
                config.priorities && sockopt::set_ipv6_tclass(&socket, 0).is_ok(),
                config.reports && on(libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
            )
        }
    };
    let mut address = bind;
    // Raw IPv6 sockets require 0 in place of the port.
    address.set_port(0);
    socket.bind(&address.into()).map_err(failed("bind"))?;
    let receive_buffer = socket.recv_buffer_size().map_err(failed("read the buffer size of"))?;
    let mut local = bind;
    local.set_port(port.number);
    Ok(Opened { socket, family, local, any, priorities, ecn, reports, receive_buffer, port, ids })
}

/// Returns a new non-blocking socket.
pub(crate) fn new_socket(family: Family) -> io::Result<Socket> {
    let domain = match family {
        Family::V4 => Domain::IPV4,
        Family::V6 => Domain::IPV6,
    };
    Socket::new(domain, Type::RAW.nonblocking(), Some(Protocol::from(HOMA)))
}

/// Reserves the requested port, or any.
fn reserve(bind: SocketAddr, family: Family) -> Result<Port, RawOpenError> {
    let failed = |source| system("reserve a port for", bind, source);
    match bind.port() {
        0 => {
            let port = Port::reserve_any(family).map_err(failed)?;
            port.ok_or(RawOpenError::NoFreePort { address: bind })
        }
        port => {
            let port = Port::reserve(port, family).map_err(failed)?;
            port.ok_or(RawOpenError::PortInUse { address: bind })
        }
    }
}

/// Returns the error for a raw socket that the system refused.
pub(crate) fn not_opened(address: SocketAddr, source: io::Error) -> RawOpenError {
    match Errno::from_io_error(&source) {
        Some(Errno::PERM | Errno::ACCESS) => {
            // Fall back to the name that the program was started with.
            let started = || std::env::args_os().next().unwrap_or_else(|| "PROGRAM".into()).into();
            let program = std::env::current_exe().unwrap_or_else(|_| started());
            RawOpenError::NotPermitted { address, program }
        }
        _ => system("open a raw socket for", address, source),
    }
}

/// Returns the error of an operation that the system refused.
pub(crate) fn system(
    operation: &'static str,
    address: SocketAddr,
    source: io::Error,
) -> RawOpenError {
    crate::OpenError { operation, address, source }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_length_out_of_range_is_an_error() {
        for max_ip_packet in [0, 1279, 65_536] {
            let config = RawConfig { max_ip_packet, ..RawConfig::default() };
            let error = io::Error::from(open(&config).expect_err("it cannot be opened"));
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }
}
