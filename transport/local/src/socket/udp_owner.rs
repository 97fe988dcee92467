//! Ownership of UDP sockets, as reported by the kernel.
//!
//! Any process may listen under the abstract name of an endpoint. Only the kernel can tell which
//! user owns the UDP socket of the same address, and `sock_diag(7)` reports it: queried for the
//! socket that receives datagrams for an address, it names the user that opened it.
//!
//! The messages are written by hand: they are 72 bytes with one question, and a netlink library
//! would be the largest dependency of this crate.
//!
//! A client compares that user with SO_PEERCRED before it sends anything, once per connection, in
//! 10 µs and without privileges. If the system does not answer, credentials alone decide under
//! `PeerPolicy::SameUser`, and the path is off under other policies. Rationale: a secret from the
//! network's session exists only after the first response; the socket itself, passed over, would
//! let the client read the server's datagrams; a folder of the user is not shared by containers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::io::Errno;
use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Bytes of `struct nlmsghdr`, and of `struct inet_diag_req_v2` (Linux `uapi/linux/inet_diag.h`).
const HEADER: usize = 16;
const REQUEST: usize = 56;
/// Offset of `idiag_uid` in `struct inet_diag_msg`.
const UID: usize = 64;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const IPPROTO_UDP: u8 = 17;

/// Returns the user that owns the UDP socket that receives datagrams for `address`, an address of
/// this host; `None` if there is no such socket, or the kernel cannot tell.
#[must_use]
pub fn udp_owner(address: SocketAddr) -> Option<u32> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(SOCK_DIAG));
    let socket = socket.ok()?;
    rustix::net::send(&socket, &request(address), SendFlags::empty()).ok()?;
    let mut reply = [0; 512];
    // The kernel has answered when the send returns.
    let (received, _) = match rustix::net::recv(&socket, &mut reply[..], RecvFlags::empty()) {
        Err(Errno::INTR) => rustix::net::recv(&socket, &mut reply[..], RecvFlags::empty()).ok()?,
        other => other.ok()?,
    };
    let reply = &reply[..received];
    let kind = u16::from_ne_bytes(*reply.get(4..)?.first_chunk()?);
    let uid = reply.get(HEADER + UID..)?.first_chunk()?;
    (kind == SOCK_DIAG_BY_FAMILY).then(|| u32::from_ne_bytes(*uid))
}

/// Returns the question for the socket that receives datagrams for `address`.
fn request(address: SocketAddr) -> [u8; HEADER + REQUEST] {
    let mut bytes = [0; HEADER + REQUEST];
    bytes[..4].copy_from_slice(&((HEADER + REQUEST) as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    let body = &mut bytes[HEADER..];
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    body[0] = family.as_raw() as u8;
    body[1] = IPPROTO_UDP;
    // All states.
    body[4..8].fill(0xff);
    // `struct inet_diag_sockid`. Its source is the sender of the datagram, and its destination the
    // socket that is sought (Linux `net/ipv4/udp_diag.c` `udp_dump_one`).
    let id = &mut body[8..];
    id[2..4].copy_from_slice(&address.port().to_be_bytes());
    match reachable(address.ip()) {
        IpAddr::V4(ip) => id[20..24].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => id[20..36].copy_from_slice(&ip.octets()),
    }
    // No interface, and INET_DIAG_NOCOOKIE.
    id[40..48].fill(0xff);
    bytes
}

/// Returns the address that the system sends datagrams for `ip` to: the loopback address if it is
/// unspecified.
fn reachable(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn the_owner_of_a_socket_is_known_by_every_address_that_reaches_it() {
        let own = Some(rustix::process::geteuid().as_raw());
        let bound =
            |to: &str| UdpSocket::bind(to).map(|socket| (socket.local_addr().unwrap(), socket));
        let (exact, socket) = bound("127.0.0.1:0").unwrap();
        if udp_owner(exact).is_none() {
            eprintln!("SKIPPED: this kernel does not say who owns UDP sockets");
            return;
        }
        assert_eq!(udp_owner(exact), own);
        let other = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), exact.port()));
        assert_eq!(udp_owner(other), None, "bound to another address");
        drop(socket);
        assert_eq!(udp_owner(exact), None);
        let (every, _socket) = bound("0.0.0.0:0").unwrap();
        for ip in [Ipv4Addr::UNSPECIFIED, Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2)] {
            assert_eq!(udp_owner((ip, every.port()).into()), own, "{ip}");
        }
        let Ok((both, _socket)) = bound("[::]:0") else { return };
        assert_eq!(udp_owner((Ipv6Addr::LOCALHOST, both.port()).into()), own);
    }
}
