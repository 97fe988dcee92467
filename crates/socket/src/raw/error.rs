//! Why could a raw socket not be opened, and what should one do?

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a [`crate::Raw`] driver could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RawOpenError {
    /// The process lacks CAP_NET_RAW.
    #[error(
        "open a raw socket for {address}: this takes the capability CAP_NET_RAW; \
         `sudo setcap cap_net_raw+ep {}` gives it to the program, once for all",
        .program.display()
    )]
    NotPermitted {
        /// The address that was to be listened on.
        address: SocketAddr,
        /// The program that wants it.
        program: PathBuf,
    },
    /// Another endpoint of this host has the port.
    #[error("reserve port {} for {address}: another endpoint of this host has it", .address.port())]
    PortInUse {
        /// The address that was to be listened on.
        address: SocketAddr,
    },
    /// All ports for clients are in use.
    #[error("reserve a port for {address}: all from 32768 to 65535 are in use")]
    NoFreePort {
        /// The address that was to be listened on.
        address: SocketAddr,
    },
    /// So many endpoints are open on this host that there are no RPC ids for another one.
    #[error(
        "open {address}: {} endpoints are open on this host, which is the most",
        crate::raw::ids::RANGES
    )]
    TooManyEndpoints {
        /// The address that was to be listened on.
        address: SocketAddr,
    },
    /// The system refuses the address, or something that every system has.
    #[error(transparent)]
    System(#[from] crate::OpenError),
}

impl From<RawOpenError> for io::Error {
    fn from(error: RawOpenError) -> Self {
        let kind = match &error {
            RawOpenError::NotPermitted { .. } => io::ErrorKind::PermissionDenied,
            RawOpenError::PortInUse { .. } | RawOpenError::NoFreePort { .. } => {
                io::ErrorKind::AddrInUse
            }
            RawOpenError::TooManyEndpoints { .. } => io::ErrorKind::QuotaExceeded,
            RawOpenError::System(error) => error.source.kind(),
        };
        Self::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_lacks_the_capability_learns_how_to_give_it() {
        let address = "10.0.0.1:4000".parse().unwrap();
        let program = "/usr/bin/apus".into();
        let error = RawOpenError::NotPermitted { address, program };
        assert!(
            error.to_string().contains("`sudo setcap cap_net_raw+ep /usr/bin/apus`"),
            "{error}"
        );
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::PermissionDenied);
    }
}
