//! Errors of endpoints, calls and replies.

use crate::refusal::remedy;
use apus_process::ForeignProcess;
use apus_proto::{CommandError, ConfigError, Execution, FailureKind, RpcError};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// The reason why an endpoint is closed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Closed {
    /// The application shut the endpoint down.
    #[error("the endpoint was shut down")]
    ShutDown,
    /// The driver failed for good, or the runtime of an async endpoint ended. A new endpoint is
    /// needed.
    #[error("the endpoint's driver failed: {0}")]
    Driver(#[source] Arc<io::Error>),
    /// The caller is in a child of the process that opened the endpoint: a fork does not copy
    /// endpoints. The parent's endpoint is as it was, and nothing was sent.
    #[error("the endpoint is another process's: {0}")]
    Forked(#[from] ForeignProcess),
}

/// The reason why a call failed. [`CallError::execution`] tells whether its request may have been
/// executed.
///
/// ```no_run
/// use apus::{CallError, Endpoint, Execution};
/// use std::net::SocketAddr;
///
/// /// Calls a second server if the first one has certainly not executed the request.
/// fn order(endpoint: &Endpoint, servers: [SocketAddr; 2]) -> Result<apus::Bytes, CallError> {
///     match endpoint.call(servers[0], "one coffee") {
///         Err(error) if error.execution() == Execution::NotExecuted => {
///             endpoint.call(servers[1], "one coffee")
///         }
///         result => result,
///     }
/// }
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The network or the peer failed, or the deadline passed.
    #[error(transparent)]
    Failed(#[from] RpcError),
    /// An argument is out of range, or there is no room and
    /// [`CallOptions::no_wait`](crate::CallOptions::no_wait) is set. The request was not sent.
    #[error(transparent)]
    Rejected(CommandError),
    /// The endpoint is closed. The request was not sent.
    #[error(transparent)]
    Closed(#[from] Closed),
    /// The failure of the driver has closed the endpoint during the call.
    #[error("{why}; {execution}")]
    Interrupted {
        /// Why the endpoint is closed.
        #[source]
        why: Closed,
        /// Whether the request may have been executed.
        execution: Execution,
    },
}

impl From<ForeignProcess> for CallError {
    fn from(error: ForeignProcess) -> Self {
        Self::Closed(error.into())
    }
}

impl From<ForeignProcess> for ReplyError {
    fn from(error: ForeignProcess) -> Self {
        Self::Closed(error.into())
    }
}

impl CallError {
    /// Returns whether the request may have been executed, as far as the client can tell.
    #[must_use]
    pub const fn execution(&self) -> Execution {
        match self {
            Self::Failed(error) => error.execution,
            Self::Interrupted { execution, .. } => *execution,
            Self::Rejected(_) | Self::Closed(_) => Execution::NotExecuted,
        }
    }

    /// Returns whether the call was rejected because a limit of the configuration is reached, so
    /// that it may succeed later.
    #[must_use]
    pub const fn is_back_pressure(&self) -> bool {
        match self {
            Self::Rejected(error) => error.is_back_pressure(),
            _ => false,
        }
    }

    /// Returns the error of a call that its caller gave up before it could be sent.
    pub(crate) const fn interrupted() -> Self {
        Self::Failed(RpcError { kind: FailureKind::Cancelled, execution: Execution::NotExecuted })
    }

    /// Returns the error of a call whose deadline passed before it could be sent.
    pub(crate) const fn too_late() -> Self {
        Self::Failed(RpcError {
            kind: FailureKind::DeadlineExceeded,
            execution: Execution::NotExecuted,
        })
    }
}

/// The reason why a reply could not be sent.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// The client does not wait any more: it is unreachable, was restarted, cancelled the call, or
    /// the deadline of the call has passed.
    #[error("the client does not wait for the reply any more")]
    ClientGone,
    /// The reply is too long, or it is empty and the client takes no empty messages: in the kernel
    /// profile, or because its version of apus is too old. If the request is not replied to again
    /// ([`Request::reply_or_keep`](crate::Request::reply_or_keep)), its client gets an error, which
    /// states whether the reply was too long.
    #[error(transparent)]
    Rejected(CommandError),
    /// The caller stopped waiting for room; the reply was not sent.
    #[error("the reply was not sent: its caller stopped waiting for room")]
    GivenUp,
    /// The endpoint is closed.
    #[error(transparent)]
    Closed(#[from] Closed),
}

/// The reason why an endpoint could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Keys or certificates cannot be used.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Security(#[from] apus_seal::tls::CredentialsError),
    /// The address cannot be resolved.
    #[error("resolve {address}: {source}")]
    Resolve {
        /// The address as it was given.
        address: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The UDP socket could not be opened.
    #[error("{0}{remedy}", remedy = remedy(&.0.source))]
    Open(#[from] apus_socket::OpenError),
    /// The raw IP socket could not be opened, for example because the capability is missing or the
    /// port is in use.
    #[error(transparent)]
    OpenRaw(#[from] apus_socket::RawOpenError),
    /// The system refused a thread, a descriptor or a random seed.
    #[error("start the engine of {address}: {source}{remedy}", remedy = remedy(source))]
    Start {
        /// The endpoint's address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The folder for trace files cannot be created, or the system refused the thread that writes
    /// them.
    #[error("write time traces to {}: {source}", folder.display())]
    TraceFiles {
        /// The folder.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The tokio runtime cannot run an async endpoint.
    #[cfg(feature = "tokio")]
    #[error("no runtime for the endpoint: {reason}")]
    Runtime {
        /// What is missing.
        reason: String,
    },
    /// The configuration is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
}
