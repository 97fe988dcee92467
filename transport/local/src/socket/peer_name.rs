//! Names by which endpoints find each other.
//!
//! A name is an abstract name of a unix socket. It is in no file system and disappears with the
//! socket, however the process ends. Abstract names belong to a network namespace, as addresses and
//! ports do. An endpoint's name is therefore made from the address of its UDP socket: a process
//! that can send a datagram to the address can also find the name.
//!
//! Any process may bind a free name, so a bound name proves nothing. The peer's credentials
//! identify the user that answers ([`super::credentials::PeerPolicy`]), and the kernel reports
//! whether that user owns the UDP socket of the address ([`super::udp_owner`]).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::net::SocketAddrUnix;

use crate::error::ConnectError;

/// The name of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerName(Vec<u8>);

/// Prefix of every name. It contains the version of the handshake: endpoints of different versions
/// do not meet.
const PREFIX: &str = "apus-local/1/";

/// Prefix of the names of pages. It contains the version of the exchange between a distributor and
/// a member.
const PAGE_PREFIX: &str = "apus-page/1/";

impl PeerName {
    /// Returns the name of the endpoint whose UDP socket is bound to `address`.
    #[must_use]
    pub fn of(address: SocketAddr) -> Self {
        Self::new(&address.to_string())
    }

    /// Returns the name `name`, which has at most 94 bytes.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(format!("{PREFIX}{name}").into_bytes())
    }

    /// Returns the name of a page that processes share ([`Membership`](crate::Membership)): `name`
    /// has at most 95 bytes.
    #[must_use]
    pub fn of_page(name: &str) -> Self {
        Self(format!("{PAGE_PREFIX}{name}").into_bytes())
    }

    /// Returns the candidate names of the endpoint that receives datagrams for `address`: bound to
    /// that address, or to all addresses.
    pub fn candidates(address: SocketAddr) -> impl Iterator<Item = Self> {
        let every = |ip: IpAddr| Self::of(SocketAddr::new(ip, address.port()));
        let v6 = every(Ipv6Addr::UNSPECIFIED.into());
        let v4 = address.is_ipv4().then(|| every(Ipv4Addr::UNSPECIFIED.into()));
        let exact = Self::of(SocketAddr::new(address.ip(), address.port()));
        [Some(exact), v4, Some(v6)].into_iter().flatten()
    }

    /// Returns the socket address of this name.
    pub(crate) fn address(&self) -> Result<SocketAddrUnix, ConnectError> {
        SocketAddrUnix::new_abstract_name(&self.0).map_err(|_| ConnectError::NameTooLong)
    }
}

impl std::fmt::Display for PeerName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "@{}", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_the_address_and_the_unspecified_addresses() {
        let names = |text: &str| -> Vec<String> {
            PeerName::candidates(text.parse().unwrap()).map(|name| name.to_string()).collect()
        };
        assert_eq!(
            names("10.0.0.7:4000"),
            [
                "@apus-local/1/10.0.0.7:4000",
                "@apus-local/1/0.0.0.0:4000",
                "@apus-local/1/[::]:4000"
            ]
        );
        assert_eq!(names("[::1]:5"), ["@apus-local/1/[::1]:5", "@apus-local/1/[::]:5"]);
        // The scope names an interface of the sender, not of the address.
        assert_eq!(names("[fe80::1%3]:5"), ["@apus-local/1/[fe80::1]:5", "@apus-local/1/[::]:5"]);
    }

    #[test]
    fn a_name_that_is_too_long_is_an_error() {
        assert!(PeerName::new(&"x".repeat(94)).address().is_ok());
        assert!(matches!(PeerName::new(&"x".repeat(95)).address(), Err(ConnectError::NameTooLong)));
    }
}
