//! UDP sockets: opening and binding.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

use crate::address::{Family, canonical, is_wildcard};
use crate::kernel;
use crate::mtu::MINIMUM;
use crate::open::{OpenError, forbid_fragments, size_buffers};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};

use crate::udp::coalescing;
use crate::udp::config::UdpConfig;
use crate::udp::features::Features;
use crate::udp::spread;

/// A bound socket.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) socket: Socket,
    pub(crate) family: Family,
    pub(crate) features: Features,
    pub(crate) local: SocketAddr,
    /// Bytes of the granted receive buffer.
    pub(crate) receive_buffer: usize,
    /// Whether sprayed packets arrive at the same socket as packets from their sender's own port.
    pub(crate) finds_sprayed: bool,
}

/// Opens and binds `count` sockets at one address (SO_REUSEPORT).
///
/// The first socket is bound without sharing, so that an address in use is an error even if the
/// other socket would share it. Only then is the address shared. Packets that arrive before the
/// last socket is bound may be queued at another socket than later packets of the same sender; they
/// are discarded, and the sender repeats them.
pub(crate) fn open_group(config: &UdpConfig, count: usize) -> Result<Vec<Opened>, OpenError> {
    let first = open(config)?;
    let address = first.local;
    let failed = |operation| move |source| OpenError { operation, address, source };
    first.socket.set_reuse_port(true).map_err(failed("share"))?;
    let same = UdpConfig { bind: address, ..*config };
    let mut group = vec![first];
    for _ in 1..count {
        group.push(open_at(address, &same, Sharing::SharedSocket)?);
    }
    // A system that refuses it chooses by its hash, which uses only the port in the UDP header.
    let mut spread = spread::over(group.len() as u32, config.spray_ports > 0);
    let is_chosen = kernel::choose_socket_by(group[0].socket.as_fd(), &mut spread).is_ok();
    for opened in &mut group {
        discard_all(&opened.socket);
        opened.finds_sprayed = is_chosen;
    }
    Ok(group)
}

/// Opens the second socket of `first`, for bulk packets ([`coalescing`]). `None` if the system
/// cannot separate them: then the address is not shared.
pub(crate) fn open_bulk(first: &Opened, config: &UdpConfig) -> Option<Opened> {
    first.socket.set_reuse_port(true).ok()?;
    let same = UdpConfig { bind: first.local, ..*config };
    let second = open_at(first.local, &same, Sharing::SharedSocket).ok();
    let second = second.filter(|_| {
        kernel::choose_socket_by(first.socket.as_fd(), &mut coalescing::program()).is_ok()
    });
    if second.is_none() {
        let _ = first.socket.set_reuse_port(false);
    }
    second
}

/// Discards all packets received by the socket.
fn discard_all(socket: &Socket) {
    // A reported error ends one call, an empty queue ends the loop. It is bounded, since packets
    // may arrive faster than they are discarded.
    for _ in 0..MAX_DISCARDED {
        if socket.recv(&mut []).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            return;
        }
    }
}

/// Maximum number of discarded packets. Chosen by us: more than arrive while eight sockets are
/// bound.
const MAX_DISCARDED: usize = 65_536;

/// Whether further sockets may be bound to a socket's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    Exclusive,
    SharedSocket,
}

/// Opens and binds a socket with these settings.
pub(crate) fn open(config: &UdpConfig) -> Result<Opened, OpenError> {
    let bind = canonical(config.bind);
    if !(MINIMUM..=usize::from(u16::MAX)).contains(&config.max_ip_packet) {
        let text = format!("max_ip_packet is {}, not 1280 to 65535", config.max_ip_packet);
        let source = io::Error::new(io::ErrorKind::InvalidInput, text);
        return Err(OpenError { operation: "open", address: bind, source });
    }
    match open_at(bind, config, Sharing::Exclusive) {
        // All addresses of a system without IPv6 are IPv4 addresses.
        Err(error) if bind.is_ipv6() && is_without_ipv6(&error) && is_any(bind) => {
            open_at((Ipv4Addr::UNSPECIFIED, bind.port()).into(), config, Sharing::Exclusive)
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

fn open_at(bind: SocketAddr, config: &UdpConfig, sharing: Sharing) -> Result<Opened, OpenError> {
    let failed = |operation| move |source| OpenError { operation, address: bind, source };
    let family = Family::of(bind);
    let socket = new_socket(family, config).map_err(failed("open a socket for"))?;
    size_buffers(&socket, config.receive_buffer, config.send_buffer);
    forbid_fragments(&socket, family).map_err(failed("forbid fragments on"))?;
    // The features are enabled before the socket is bound, so that they cover the first packet.
    let features = Features::detect(socket.as_fd(), family, config);
    if family == Family::V6 {
        socket.set_only_v6(!is_any(bind)).map_err(failed("share with IPv4"))?;
    }
    if sharing == Sharing::SharedSocket {
        socket.set_reuse_port(true).map_err(failed("share"))?;
    }
    socket.bind(&bind.into()).map_err(failed("bind"))?;
    let local = socket.local_addr().map_err(failed("read the address of"))?;
    let local = local.as_socket().expect("an internet socket has an internet address");
    let receive_buffer = socket.recv_buffer_size().map_err(failed("read the buffer size of"))?;
    Ok(Opened { socket, family, features, local, receive_buffer, finds_sprayed: true })
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
    fn a_group_shares_an_address_that_no_other_socket_has() {
        let any = UdpConfig::bound_to("127.0.0.1:0".parse().unwrap());
        let group = open_group(&any, 3).unwrap();
        let address = group[0].local;
        assert!(group.iter().all(|opened| opened.local == address));
        let same = UdpConfig::bound_to(address);
        for error in [error(&same), open_group(&same, 3).unwrap_err()] {
            assert_eq!(error.source.kind(), io::ErrorKind::AddrInUse, "a second group joins none");
        }
        // Each sender has one socket of the group, and each socket has senders.
        let mut senders = [0; 3];
        for _ in 0..64 {
            let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            for _ in 0..3 {
                sender.send_to(b"x", address).unwrap();
            }
            let received = group.iter().map(|opened| {
                let socket = &opened.socket;
                (0..4).take_while(|_| socket.recv(&mut []).is_ok()).count()
            });
            let received: Vec<usize> = received.collect();
            let at = received.iter().position(|count| *count == 3).expect("all at one socket");
            assert_eq!(received.iter().sum::<usize>(), 3, "{received:?}");
            senders[at] += 1;
        }
        assert!(senders.iter().all(|senders| *senders > 0), "{senders:?}");
    }

    /// Returns the socket number that the program computes for a sender at this port of 127.0.0.1
    /// or ::1, with these last four address bytes.
    fn number(port: u16, address: u32, sockets: u32) -> usize {
        (u32::from(port).wrapping_add(address).wrapping_add(address >> 16) % sockets) as usize
    }

    #[test]
    fn the_ports_of_a_client_are_spread_evenly() {
        for (server, client, address) in [
            ("127.0.0.1:0", "127.0.0.1:0", 0x7f00_0001),
            ("127.0.0.1:0", "127.7.9.200:0", 0x7f07_09c8),
            ("[::1]:0", "[::1]:0", 1),
            ("[::]:0", "127.0.0.1:0", 0x7f00_0001),
            ("[::]:0", "[::1]:0", 1),
        ] {
            for sockets in [2, 3, 8] {
                let config = UdpConfig::bound_to(server.parse().unwrap());
                let group = open_group(&config, sockets).unwrap();
                for _ in 0..20 {
                    let sender = std::net::UdpSocket::bind(client).unwrap();
                    let from = sender.local_addr().unwrap();
                    let to = SocketAddr::new(from.ip(), group[0].local.port());
                    let to = if is_any(group[0].local) { to } else { group[0].local };
                    sender.send_to(b"x", to).unwrap();
                    let at = group.iter().position(|opened| opened.socket.recv(&mut []).is_ok());
                    let expected = number(from.port(), address, sockets as u32);
                    assert_eq!(at, Some(expected), "from {from} to {to}, {sockets} sockets");
                }
            }
        }
    }

    /// WIRE-36: sprayed packets are attributed to the port in their header, from any source port.
    /// Other packets, including other types with that bit set, are attributed to their source port.
    #[test]
    fn a_sprayed_packet_is_for_the_socket_of_the_port_in_its_header() {
        let packet = |kind: u8, mark: u8, sport: u16, len: usize| {
            let mut packet = vec![0; len];
            packet[..2].copy_from_slice(&sport.to_be_bytes());
            (packet[11], packet[12]) = (kind, 0xe3 | mark);
            packet
        };
        for (server, client, address) in
            [("127.0.0.1:0", "127.0.0.1:0", 0x7f00_0001), ("[::1]:0", "[::1]:0", 1)]
        {
            let bind = UdpConfig::bound_to(server.parse().unwrap());
            let group = open_group(&UdpConfig { spray_ports: 1, ..bind }, 7).unwrap();
            let sender = std::net::UdpSocket::bind(client).unwrap();
            let own = sender.local_addr().unwrap().port();
            for sport in 1_000..1_020 {
                for (packet, from) in [
                    (packet(0x10, 8, sport, 28), sport),
                    (packet(0x10, 8, sport, 1_400), sport),
                    (packet(0x10, 0, sport, 1_400), own),
                    (packet(0x11, 8, sport, 1_400), own),
                    (packet(0x10, 8, sport, 27), own),
                    (Vec::new(), own),
                ] {
                    sender.send_to(&packet, group[0].local).unwrap();
                    let at = group.iter().position(|opened| opened.socket.recv(&mut []).is_ok());
                    assert_eq!(at, Some(number(from, address, 7)), "{client}: {packet:x?}");
                }
            }
        }
    }

    #[test]
    fn what_arrives_before_the_group_is_complete_is_discarded() {
        let opened = open(&UdpConfig::bound_to("127.0.0.1:0".parse().unwrap())).unwrap();
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..5 {
            sender.send_to(b"early", opened.local).unwrap();
        }
        discard_all(&opened.socket);
        let left = opened.socket.recv(&mut []).unwrap_err();
        assert_eq!(left.kind(), io::ErrorKind::WouldBlock);
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
