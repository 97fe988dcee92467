//! Errors of a mount.

use std::net::SocketAddr;
use std::time::Duration;

use apus::{BindError, Closed};
use apus_fuse::{Errno, MountError, ReadError};

/// Why nothing is mounted, or not any more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountFailure {
    /// The kernel refuses the mount.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// The kernel cannot be served.
    #[error("serve the kernel: {0}")]
    Kernel(#[from] ReadError),
    /// The system refuses the device.
    #[error("open a session with the kernel: {source}")]
    Session {
        /// The system's error.
        source: Errno,
    },
    /// The system grants no socket.
    #[error("call {server}: {source}")]
    Bind {
        /// The server.
        server: SocketAddr,
        /// What happened.
        source: BindError,
    },
    /// The server does not respond.
    #[error("{server} has not responded within {} s{}", .waited.as_secs(), reason(.warnings))]
    Silent {
        /// The server.
        server: SocketAddr,
        /// How long it had time.
        waited: Duration,
        /// What the client has noticed meanwhile.
        warnings: Vec<String>,
    },
    /// The server refuses the client.
    #[error("{server} refuses the mount: {source}{}", reason(.warnings))]
    Refused {
        /// The server.
        server: SocketAddr,
        /// The error that applications would get.
        source: Errno,
        /// What the client has noticed meanwhile.
        warnings: Vec<String>,
    },
    /// The network cannot be used any more.
    #[error("call the server: {source}")]
    Network {
        /// What happened.
        source: Closed,
    },
    /// The system grants no thread, descriptor or random number.
    #[error("{operation}: {source}")]
    System {
        /// What was attempted.
        operation: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

fn reason(warnings: &[String]) -> String {
    warnings.last().map(|warning| format!(" ({warning})")).unwrap_or_default()
}
