//! Addresses as text, and which of them name a host.
//!
//! The standard library reads `[fe80::1%2]:4000` and not `[fe80::1%eth0]:4000`: the names of
//! interfaces are the system's. [`parse`] and [`resolve`] read both.

use apus_proto::CommandError;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};

/// The reason why a text is no address of a service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// It is no IP address with a port.
    #[error("{0:?} is no IP address with a port, such as 10.0.0.7:4000 or [fd00::7]:4000")]
    NotAnAddress(String),
    /// A link-local address names a host only together with an interface.
    #[error("a link-local address needs %interface, such as [fe80::1%eth0]:4000")]
    NeedsInterface,
    /// This host has no such interface.
    #[error("this host has no interface {0:?}")]
    NoInterface(String),
}

/// Reads an IP address with a port, such as `10.0.0.7:4000`, `[fd00::7]:4000` or
/// `[fe80::1%eth0]:4000`. The interface of a link-local address is given by its name or number.
/// Names of hosts are not looked up.
///
/// ```
/// let address = apus::address::parse("[fe80::1%lo]:4000")?;
/// assert_eq!(address.port(), 4000);
/// assert!(apus::address::parse("[fe80::1]:4000").is_err());
/// # Ok::<_, apus::address::AddressError>(())
/// ```
///
/// # Errors
///
/// [`AddressError`].
pub fn parse(text: &str) -> Result<SocketAddr, AddressError> {
    let address = match text.parse() {
        Ok(SocketAddr::V6(address)) if address.scope_id() != 0 => {
            let number = address.scope_id();
            let exists = is_interface(number);
            exists.then_some(SocketAddr::V6(address)).ok_or_else(|| no_interface(&number))?
        }
        Ok(address) => address,
        Err(_) => parse_scoped(text)?,
    };
    if needs_interface(address) { Err(AddressError::NeedsInterface) } else { Ok(address) }
}

/// Reads an address as [`parse`] does, or looks the name of a host up, such as `inventory:4000`.
/// That may take seconds: look a name up once, not before each call.
///
/// # Errors
///
/// The name has no address, or the text is none.
pub fn resolve(text: &str) -> io::Result<Vec<SocketAddr>> {
    match parse(text) {
        Ok(address) => return Ok(vec![address]),
        // It may be the name of a host.
        Err(AddressError::NotAnAddress(_)) => {}
        Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidInput, error)),
    }
    let found: Vec<SocketAddr> = text.to_socket_addrs()?.collect();
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    }
    Ok(found)
}

/// Reads `[IP%INTERFACE]:PORT` with the name of an interface.
fn parse_scoped(text: &str) -> Result<SocketAddr, AddressError> {
    let malformed = || AddressError::NotAnAddress(text.to_owned());
    let (host, port) = text.rsplit_once(':').ok_or_else(malformed)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let (ip, name) = host.and_then(|host| host.split_once('%')).ok_or_else(malformed)?;
    let ip: Ipv6Addr = ip.parse().map_err(|_| malformed())?;
    let port = port.parse().map_err(|_| malformed())?;
    let scope = number_of_interface(name).ok_or_else(|| no_interface(&name))?;
    Ok(SocketAddrV6::new(ip, port, 0, scope).into())
}

fn no_interface(which: &impl ToString) -> AddressError {
    AddressError::NoInterface(which.to_string())
}

/// Returns the number of an interface of this host.
fn number_of_interface(name: &str) -> Option<u32> {
    rustix::net::netdevice::name_to_index(any_socket()?, name).ok()
}

fn is_interface(number: u32) -> bool {
    any_socket().is_some_and(|fd| rustix::net::netdevice::index_to_name(fd, number).is_ok())
}

/// Returns a socket, which the system needs for questions about interfaces.
fn any_socket() -> Option<std::os::fd::OwnedFd> {
    use rustix::net::{AddressFamily, SocketType, socket};
    let open = |family| socket(family, SocketType::DGRAM, None).ok();
    open(AddressFamily::INET).or_else(|| open(AddressFamily::INET6))
}

/// Returns whether the address is link-local without an interface.
pub(crate) fn needs_interface(address: SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(v6) if v6.scope_id() == 0 && v6.ip().is_unicast_link_local())
}

/// Returns the address that packets to `to` go to, and come back from: the loopback address for an
/// unspecified one, as for TCP; no flow label, and an interface for link-local addresses alone.
///
/// # Errors
///
/// `to` names no host.
#[inline]
pub(crate) fn destination(to: SocketAddr) -> Result<SocketAddr, CommandError> {
    match to.ip() {
        IpAddr::V4(ip) if is_usual(ip) => Ok(to),
        _ => unusual_destination(to),
    }
}

/// Returns whether an address is unicast, and not the unspecified one.
#[inline]
const fn is_usual(ip: Ipv4Addr) -> bool {
    let [first, ..] = ip.octets();
    first != 0 && first < 224
}

fn unusual_destination(to: SocketAddr) -> Result<SocketAddr, CommandError> {
    let port = to.port();
    match to {
        SocketAddr::V4(_) if to.ip().is_unspecified() => {
            Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))
        }
        SocketAddr::V6(_) if to.ip().is_unspecified() => {
            Ok(SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port))
        }
        _ if to.ip().to_canonical().is_unspecified() => {
            Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))
        }
        _ if to.ip().to_canonical().is_multicast() => Err(CommandError::NoHost),
        SocketAddr::V4(v4) if v4.ip().is_broadcast() => Err(CommandError::NoHost),
        SocketAddr::V6(_) if needs_interface(to) => Err(CommandError::NeedsInterface),
        SocketAddr::V6(v6) => {
            let scope = if v6.ip().is_unicast_link_local() { v6.scope_id() } else { 0 };
            Ok(SocketAddrV6::new(*v6.ip(), port, 0, scope).into())
        }
        SocketAddr::V4(_) => Ok(to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_named_or_numbered() {
        let lo = number_of_interface("lo").unwrap();
        for text in ["[fe80::1%lo]:4000".to_owned(), format!("[fe80::1%{lo}]:4000")] {
            let SocketAddr::V6(address) = parse(&text).unwrap() else { panic!("{text}") };
            assert_eq!((address.scope_id(), address.port()), (lo, 4000), "{text}");
            assert_eq!(resolve(&text).unwrap(), [address.into()]);
        }
        for text in ["10.0.0.7:4000", "[fd00::7]:4000"] {
            assert_eq!(parse(text).unwrap(), text.parse().unwrap());
        }
    }

    #[test]
    fn the_error_names_what_is_wrong() {
        for (text, problem) in [
            ("[fe80::1]:4000", "needs %interface"),
            ("[fe80::1%nosuch]:4000", "no interface \"nosuch\""),
            ("[fe80::1%99999]:4000", "no interface \"99999\""),
            ("[fe80::1%]:4000", "no interface \"\""),
            ("fe80::1%lo:4000", "no IP address with a port"),
            ("[fe80::1%lo]", "no IP address with a port"),
            ("[10.0.0.1%lo]:1", "no IP address with a port"),
            ("localhost:1", "no IP address with a port"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
        let error = resolve("[fe80::1]:4000").unwrap_err().to_string();
        assert!(error.contains("needs %interface"), "{error}");
    }

    #[test]
    fn a_destination_is_one_host() {
        for (to, goes_to) in [
            ("10.0.0.7:4000", "10.0.0.7:4000"),
            ("0.0.0.0:4000", "127.0.0.1:4000"),
            ("[::]:4000", "[::1]:4000"),
            ("[::ffff:0.0.0.0]:4000", "127.0.0.1:4000"),
            ("[fd00::7%3]:4000", "[fd00::7]:4000"),
            ("[fe80::7%3]:4000", "[fe80::7%3]:4000"),
        ] {
            assert_eq!(destination(to.parse().unwrap()), Ok(goes_to.parse().unwrap()), "{to}");
        }
        for (to, error) in [
            ("224.0.0.1:4000", CommandError::NoHost),
            ("255.255.255.255:4000", CommandError::NoHost),
            ("[ff02::1%3]:4000", CommandError::NoHost),
            ("[fe80::7]:4000", CommandError::NeedsInterface),
        ] {
            assert_eq!(destination(to.parse().unwrap()), Err(error), "{to}");
        }
    }
}
