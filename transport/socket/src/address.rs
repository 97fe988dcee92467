//! Socket addresses in the kernel's layout.
//!
//! The kernel's structures are written and read byte by byte, without pointer casts. Their layout
//! is part of Linux's stable interface: `struct sockaddr_in` (ip(7)), `sockaddr_in6` (ipv6(7)).
//!
//! An IPv6 socket reaches IPv4 peers by mapped addresses (`::ffff:10.0.0.1`, RFC 4291 section
//! 2.5.5.2). They occur only in this file: all other code uses `10.0.0.1`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Bytes of the longest address, `struct sockaddr_in6`.
pub(crate) const RAW_LEN: usize = 28;

const RAW_V4_LEN: u8 = 16;
const RAW_V6_LEN: u8 = 28;

/// The family of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// IPv4.
    V4,
    /// IPv6. A UDP socket of this family also reaches IPv4 peers if it is bound to all addresses.
    V6,
}

impl Family {
    /// Returns the family of a socket that is bound to `address`.
    #[must_use]
    pub(crate) fn of(address: SocketAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

/// A socket address in the kernel's layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawAddress {
    bytes: [u8; RAW_LEN],
    len: u8,
}

impl RawAddress {
    /// Returns the name of `address` on a socket of `family`. `None` for an IPv6 address on an IPv4
    /// socket.
    pub(crate) fn new(address: SocketAddr, family: Family) -> Option<Self> {
        match (canonical(address), family) {
            (SocketAddr::V4(address), Family::V4) => Some(Self::v4(address)),
            (SocketAddr::V6(_), Family::V4) => None,
            (SocketAddr::V4(address), Family::V6) => {
                let mapped = address.ip().to_ipv6_mapped();
                Some(Self::v6(SocketAddrV6::new(mapped, address.port(), 0, 0)))
            }
            (SocketAddr::V6(address), Family::V6) => Some(Self::v6(address)),
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    fn v4(address: SocketAddrV4) -> Self {
        let mut bytes = [0; RAW_LEN];
        bytes[..2].copy_from_slice(&family_number(libc::AF_INET).to_ne_bytes());
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        bytes[4..8].copy_from_slice(&address.ip().octets());
        Self { bytes, len: RAW_V4_LEN }
    }

    fn v6(address: SocketAddrV6) -> Self {
        let mut bytes = [0; RAW_LEN];
        bytes[..2].copy_from_slice(&family_number(libc::AF_INET6).to_ne_bytes());
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        bytes[4..8].copy_from_slice(&address.flowinfo().to_be_bytes());
        bytes[8..24].copy_from_slice(&address.ip().octets());
        bytes[24..28].copy_from_slice(&address.scope_id().to_ne_bytes());
        Self { bytes, len: RAW_V6_LEN }
    }
}

/// Parses an address that the kernel wrote. `None` if it is truncated or of another family.
pub(crate) fn parse(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    if family == family_number(libc::AF_INET) {
        let ip: [u8; 4] = *bytes.get(4..)?.first_chunk()?;
        Some(SocketAddr::from((ip, port)))
    } else if family == family_number(libc::AF_INET6) {
        let ip: [u8; 16] = *bytes.get(8..)?.first_chunk()?;
        let scope = u32::from_ne_bytes(*bytes.get(24..)?.first_chunk()?);
        Some(canonical(SocketAddrV6::new(ip.into(), port, 0, scope).into()))
    } else {
        None
    }
}

/// Returns the address without mapping: an IPv4 peer has an IPv4 address.
#[inline]
#[must_use]
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::from((v4, v6.port())),
            None => address,
        },
    }
}

/// Returns whether `ip` is the unspecified address of its family.
#[must_use]
pub(crate) fn is_wildcard(ip: IpAddr) -> bool {
    ip == Ipv4Addr::UNSPECIFIED || ip == Ipv6Addr::UNSPECIFIED
}

/// Returns a family as `sa_family_t`.
fn family_number(family: libc::c_int) -> u16 {
    u16::try_from(family).expect("family numbers are small")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(address: &str, family: Family) -> Option<String> {
        let raw = RawAddress::new(address.parse().unwrap(), family)?;
        Some(parse(raw.as_bytes()).unwrap().to_string())
    }

    #[test]
    fn parsing_inverts_building() {
        for (address, family) in [
            ("10.1.2.3:4711", Family::V4),
            ("10.1.2.3:4711", Family::V6),
            ("[fd00::1]:80", Family::V6),
            ("[fe80::1%3]:80", Family::V6),
        ] {
            assert_eq!(round_trip(address, family).as_deref(), Some(address));
        }
    }

    #[test]
    fn mapped_addresses_are_ipv4_addresses_on_both_families() {
        let mapped = "[::ffff:10.1.2.3]:4711";
        for family in [Family::V4, Family::V6] {
            assert_eq!(round_trip(mapped, family).as_deref(), Some("10.1.2.3:4711"));
        }
        let on_v6 = RawAddress::new("10.1.2.3:4711".parse().unwrap(), Family::V6).unwrap();
        assert_eq!(on_v6.as_bytes().len(), 28);
        assert_eq!(on_v6.as_bytes()[18..24], [0xff, 0xff, 10, 1, 2, 3]);
    }

    #[test]
    fn an_ipv4_socket_cannot_name_an_ipv6_peer() {
        assert_eq!(round_trip("[fd00::1]:80", Family::V4), None);
    }

    #[test]
    fn the_layout_equals_that_of_socket2() {
        for address in ["10.1.2.3:4711", "[fd00::1]:80", "[fe80::1%3]:80"] {
            let address: SocketAddr = address.parse().unwrap();
            let raw = RawAddress::new(address, Family::of(address)).unwrap();
            let theirs = socket2::SockAddr::from(address);
            assert_eq!(theirs.len() as usize, raw.as_bytes().len());
            assert_eq!(theirs.as_socket(), parse(raw.as_bytes()));
        }
    }

    #[test]
    fn a_truncated_address_is_rejected() {
        let raw = RawAddress::new("[fd00::1]:80".parse().unwrap(), Family::V6).unwrap();
        for len in 0..28 {
            assert_eq!(parse(&raw.as_bytes()[..len]), None, "{len} bytes");
        }
        assert_eq!(parse(&[0; 28]), None, "AF_UNSPEC");
    }
}
