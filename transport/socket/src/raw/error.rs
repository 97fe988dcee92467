//! Errors of opening a raw IP driver, with advice.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a [`crate::Raw`] driver could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RawOpenError {
    /// The process lacks CAP_NET_RAW.
    #[error(
        "open a raw socket for {address}: this needs the capability CAP_NET_RAW; \
         `sudo setcap cap_net_raw+ep {}` grants it to the program permanently",
        .program.display()
    )]
    NotPermitted {
        /// The address to listen on.
        address: SocketAddr,
        /// The program that lacks the capability.
        program: PathBuf,
    },
    /// Another endpoint of this host uses the port.
    #[error("reserve port {} for {address}: another endpoint of this host uses it", .address.port())]
    PortInUse {
        /// The address to listen on.
        address: SocketAddr,
    },
    /// All ports for clients are in use.
    #[error("reserve a port for {address}: all from 32768 to 65535 are in use")]
    NoFreePort {
        /// The address to listen on.
        address: SocketAddr,
    },
    /// The maximum number of endpoints is open on this host, so no RPC ids are left.
    #[error(
        "open {address}: {} endpoints are open on this host, which is the maximum",
        crate::raw::ids::RANGES
    )]
    TooManyEndpoints {
        /// The address to listen on.
        address: SocketAddr,
    },
    /// The system refused the address, or another operation.
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
    fn a_missing_capability_comes_with_advice() {
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
