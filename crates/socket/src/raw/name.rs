//! How does a process reserve something that all processes of the host know?
//!
//! By a unix socket with an *abstract* name (unix(7)): the system gives a name to one socket at a time, lets it go with the
//! socket, however the process ends, and no file is left behind. Such names belong to a network namespace, as IP addresses do:
//! what is a host to its peers is a host here.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A name that nobody else has. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Name {
    _socket: UnixDatagram,
}

impl Name {
    /// Takes `name`; `None` if somebody has it.
    ///
    /// # Errors
    ///
    /// The system refuses a socket.
    pub(crate) fn take(name: &str) -> io::Result<Option<Self>> {
        let address = SocketAddr::from_abstract_name(format!("apus-raw/{name}"))?;
        match UnixDatagram::bind_addr(&address) {
            Ok(socket) => Ok(Some(Self { _socket: socket })),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_owner_at_a_time() {
        let name = format!("test/{}", std::process::id());
        let first = Name::take(&name).unwrap().unwrap();
        assert!(Name::take(&name).unwrap().is_none());
        drop(first);
        assert!(Name::take(&name).unwrap().is_some());
    }
}
