//! Errors of a mount.

use std::net::SocketAddr;
use std::time::Duration;

use apus::{BindError, Closed};
use apus_fuse::{Errno, MountError, ReadError};

/// Reason why a mount failed or ended.
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
        /// The cause.
        source: BindError,
    },
    /// The server does not respond.
    #[error("{server} has not responded within {} s{}", .waited.as_secs(), reason(.warnings))]
    Silent {
        /// The server.
        server: SocketAddr,
        /// Time that it had.
        waited: Duration,
        /// Warnings that the client collected meanwhile.
        warnings: Vec<String>,
    },
    /// The server refuses the client.
    #[error("{server} refuses the mount: {source}{}", reason(.warnings))]
    Refused {
        /// The server.
        server: SocketAddr,
        /// The error that applications would get.
        source: Errno,
        /// Warnings that the client collected meanwhile.
        warnings: Vec<String>,
    },
    /// The network cannot be used any more.
    #[error("call the server: {source}")]
    Network {
        /// The cause.
        source: Closed,
    },
    /// The system grants no thread, descriptor or random number.
    #[error("{operation}: {source}")]
    System {
        /// The operation that failed.
        operation: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

fn reason(warnings: &[String]) -> String {
    warnings.last().map(|warning| format!(" ({warning})")).unwrap_or_default()
}
