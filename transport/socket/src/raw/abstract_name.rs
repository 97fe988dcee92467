//! Abstract names: reservations that all processes of a host share.
//!
//! A reservation is a unix socket with an *abstract* name (unix(7)). The system gives a name to one
//! socket at a time and releases it with the socket, however the process ends; no file is left
//! behind. Abstract names belong to a network namespace, as IP addresses do, so one namespace is
//! one host here as well.

use apus_process::Descriptor;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A reserved name. Dropping it releases the name.
#[derive(Debug)]
pub(crate) struct AbstractName {
    _socket: Descriptor<UnixDatagram>,
}

impl AbstractName {
    /// Reserves `name`; `None` if it is in use.
    ///
    /// # Errors
    ///
    /// Any other error of socket(2) or bind(2).
    pub(crate) fn bind(name: &str) -> io::Result<Option<Self>> {
        match UnixDatagram::bind_addr(&address(name)?) {
            Ok(socket) => Ok(Some(Self { _socket: Descriptor::new(socket) })),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns whether `name` is reserved, without disturbing a concurrent reservation.
    ///
    /// # Errors
    ///
    /// Any error of socket(2) or connect(2), except that the name does not exist. The reservation
    /// is unknown then.
    pub(crate) fn is_reserved(name: &str) -> io::Result<bool> {
        match UnixDatagram::unbound()?.connect_addr(&address(name)?) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn address(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("apus-raw/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_owner_at_a_time() {
        let name = format!("test/{}", std::process::id());
        let first = AbstractName::bind(&name).unwrap().unwrap();
        assert!(AbstractName::bind(&name).unwrap().is_none());
        assert!(AbstractName::is_reserved(&name).unwrap());
        drop(first);
        assert!(!AbstractName::is_reserved(&name).unwrap());
        assert!(AbstractName::bind(&name).unwrap().is_some());
    }
}
