//! UDP sockets: opening and binding.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

use crate::address::{Family, canonical, is_wildcard};
use crate::mtu::MINIMUM;
use crate::open::{OpenError, forbid_fragments, size_buffers};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};

use crate::udp::config::UdpConfig;
use crate::udp::features::Features;

/// A bound socket.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) socket: Socket,
    pub(crate) family: Family,
    pub(crate) features: Features,
    pub(crate) local: SocketAddr,
    /// Bytes of the granted receive buffer.
    pub(crate) receive_buffer: usize,
}

/// Opens and binds a socket with these settings.
pub(crate) fn open(config: &UdpConfig) -> Result<Opened, OpenError> {
    let bind = canonical(config.bind);
    if !(MINIMUM..=usize::from(u16::MAX)).contains(&config.max_ip_packet) {
        let text = format!("max_ip_packet is {}, not 1280 to 65535", config.max_ip_packet);
        let source = io::Error::new(io::ErrorKind::InvalidInput, text);
        return Err(OpenError { operation: "open", address: bind, source });
    }
    match open_at(bind, config) {
        // All addresses of a system without IPv6 are IPv4 addresses.
        Err(error) if bind.is_ipv6() && is_without_ipv6(&error) && is_any(bind) => {
            open_at((Ipv4Addr::UNSPECIFIED, bind.port()).into(), config)
        }
        result => result,
    }
}

fn is_any(bind: SocketAddr) -> bool {
    is_wildcard(bind.ip())
}

fn is_without_ipv6(error: &OpenError) -> bool {
    Errno::from_io_error(&error.source) == Some(Errno::AFNOSUPPORT)
}

fn open_at(bind: SocketAddr, config: &UdpConfig) -> Result<Opened, OpenError> {
    let failed = |operation| move |source| OpenError { operation, address: bind, source };
    let family = Family::of(bind);
    let socket = new_socket(family, config).map_err(failed("open a socket for"))?;
    size_buffers(&socket, config.receive_buffer, config.send_buffer);
    forbid_fragments(&socket, family).map_err(failed("forbid fragments on"))?;
    // The features are on before the socket is bound, so that they cover the first packet.
    let features = Features::detect(socket.as_fd(), family, config);
    if family == Family::V6 {
        socket.set_only_v6(!is_any(bind)).map_err(failed("share with IPv4"))?;
    }
    socket.bind(&bind.into()).map_err(failed("bind"))?;
    let local = socket.local_addr().map_err(failed("read the address of"))?;
    let local = local.as_socket().expect("an internet socket has an internet address");
    let receive_buffer = socket.recv_buffer_size().map_err(failed("read the buffer size of"))?;
    Ok(Opened { socket, family, features, local, receive_buffer })
}

/// Returns a new non-blocking socket.
fn new_socket(family: Family, config: &UdpConfig) -> io::Result<Socket> {
    let domain = match family {
        Family::V4 => Domain::IPV4,
        Family::V6 if config.ipv6 => Domain::IPV6,
        Family::V6 => return Err(Errno::AFNOSUPPORT.into()),
    };
    Socket::new(domain, Type::DGRAM.nonblocking(), Some(Protocol::UDP))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(config: &UdpConfig) -> OpenError {
        open(config).expect_err("it cannot be opened")
    }

    #[test]
    fn an_error_names_the_operation_and_the_address() {
        let config = UdpConfig::bound_to("192.0.2.1:4711".parse().unwrap());
        let text = error(&config).to_string();
        assert!(text.starts_with("bind 192.0.2.1:4711: "), "{text}");
    }

    #[test]
    fn an_address_in_use_is_an_error() {
        let first = open(&UdpConfig::bound_to("127.0.0.1:0".parse().unwrap())).unwrap();
        let second = error(&UdpConfig::bound_to(first.local));
        assert_eq!(second.source.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(io::Error::from(second).kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_packet_length_out_of_range_is_an_error() {
        let bind = "127.0.0.1:0".parse().unwrap();
        for max_ip_packet in [0, 1279, 65_536] {
            let config = UdpConfig { max_ip_packet, ..UdpConfig::bound_to(bind) };
            assert_eq!(error(&config).source.kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn without_ipv6_all_addresses_are_those_of_ipv4() {
        let config = UdpConfig { ipv6: false, ..UdpConfig::default() };
        let opened = open(&config).unwrap();
        assert_eq!(opened.local.ip(), Ipv4Addr::UNSPECIFIED);
        let config = UdpConfig { bind: "[::1]:0".parse().unwrap(), ..config };
        let text = error(&config).to_string();
        assert!(text.starts_with("open a socket for [::1]:0: "), "{text}");
    }

    #[test]
    fn the_granted_receive_buffer_is_reported() {
        let bind = "127.0.0.1:0".parse().unwrap();
        let config = UdpConfig { receive_buffer: 20_000, ..UdpConfig::bound_to(bind) };
        assert_eq!(open(&config).unwrap().receive_buffer, 40_000);
    }
}
