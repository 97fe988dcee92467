//! What can go wrong, and what should one do?

use apus_proto::{CommandError, ConfigError, Execution, FailureKind, RpcError};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Why an endpoint does not work any more.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Closed {
    /// It was shut down by the application.
    #[error("the endpoint was shut down")]
    ShutDown,
    /// Its driver is broken; make another endpoint.
    #[error("the endpoint's driver is broken: {0}")]
    Driver(#[source] Arc<io::Error>),
}

/// Why a call failed. [`CallError::execution`] says whether its request may have been executed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The network or the peer failed, or the deadline passed.
    #[error(transparent)]
    Failed(#[from] RpcError),
    /// The arguments are out of range, or there is no room and the call was told not to wait; nothing
    /// was sent.
    #[error(transparent)]
    Rejected(CommandError),
    /// The endpoint does not work any more; nothing was sent.
    #[error(transparent)]
    Closed(#[from] Closed),
}

impl CallError {
    /// What is known about the execution of the request.
    #[must_use]
    pub const fn execution(&self) -> Execution {
        match self {
            Self::Failed(error) => error.execution,
            Self::Rejected(_) | Self::Closed(_) => Execution::NotExecuted,
        }
    }

    /// Whether there was no room (a limit of the configuration is reached), so that trying again later
    /// may help.
    #[must_use]
    pub const fn is_back_pressure(&self) -> bool {
        match self {
            Self::Rejected(error) => error.is_back_pressure(),
            _ => false,
        }
    }

    /// The deadline passed before the call could be sent.
    pub(crate) const fn too_late() -> Self {
        Self::Failed(RpcError {
            kind: FailureKind::DeadlineExceeded,
            execution: Execution::NotExecuted,
        })
    }
}

/// Why a reply could not be given.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// The client does not wait any more: it has gone, was restarted, cancelled the call, or its
    /// deadline has passed.
    #[error("the client does not wait for the reply any more")]
    ClientGone,
    /// The reply is empty or too long. The request has been let go; its client gets an error.
    #[error(transparent)]
    Rejected(CommandError),
    /// The endpoint does not work any more.
    #[error(transparent)]
    Closed(#[from] Closed),
}

/// Why an endpoint could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The address does not name any.
    #[error("resolve {address}: {source}")]
    Resolve {
        /// What was to be resolved.
        address: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The socket could not be opened.
    #[error(transparent)]
    Open(#[from] apus_socket::OpenError),
    /// The raw IP socket could not be opened: the capability for it is missing, say, or the port is in use.
    #[error(transparent)]
    OpenRaw(#[from] apus_socket::RawOpenError),
    /// A thread, a descriptor or a random seed was refused by the system.
    #[error("start the engine of {address}: {source}")]
    Start {
        /// The endpoint's address.
        address: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// The folder for traces cannot be made, or the system refuses the thread that writes them.
    #[error("leave time traces in {}: {source}", folder.display())]
    TraceFiles {
        /// The folder.
        folder: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The configuration is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
}
