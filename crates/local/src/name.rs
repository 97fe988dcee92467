//! Under which name does an endpoint meet its peers?
//!
//! An abstract name of a unix socket. It lies in no file system: it ends with the socket, however its
//! process ends. Such names belong to a network namespace, as addresses and ports do; so the name of
//! an endpoint is made of the address to which its UDP socket is bound, and whoever can send a datagram to
//! the one can find the other.
//!
//! Anybody may take a name; that it is taken proves nothing. Who answers is known by its credentials
//! ([`super::PeerPolicy`]), and that it is the right endpoint by its identity.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::net::SocketAddrUnix;

use crate::error::ConnectError;

/// The name of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerName(Vec<u8>);

/// Before every name. The number is that of the greeting: who speaks another is not even found.
const PREFIX: &str = "apus-local/1/";

impl PeerName {
    /// The name of the endpoint whose UDP socket is bound to `address`.
    #[must_use]
    pub fn of(address: SocketAddr) -> Self {
        Self::new(&address.to_string())
    }

    /// Any other name, of at most 94 bytes.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(format!("{PREFIX}{name}").into_bytes())
    }

    /// The names under which the endpoint may be found that gets what is sent to `address`: bound to that
    /// address, or to all addresses.
    pub fn candidates(address: SocketAddr) -> impl Iterator<Item = Self> {
        let every = |ip: IpAddr| Self::of(SocketAddr::new(ip, address.port()));
        let v6 = every(Ipv6Addr::UNSPECIFIED.into());
        let v4 = address.is_ipv4().then(|| every(Ipv4Addr::UNSPECIFIED.into()));
        let exact = Self::of(SocketAddr::new(address.ip(), address.port()));
        [Some(exact), v4, Some(v6)].into_iter().flatten()
    }

    /// As an address of a socket.
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
    fn names_say_which_socket() {
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
    fn a_long_name_is_an_error() {
        assert!(PeerName::new(&"x".repeat(94)).address().is_ok());
        assert!(matches!(PeerName::new(&"x".repeat(95)).address(), Err(ConnectError::NameTooLong)));
    }
}
