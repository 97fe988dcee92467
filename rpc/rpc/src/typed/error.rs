//! The error of a method with its own error type.

use crate::status::Status;
use apus::Execution;
use std::fmt;

/// Reason why a call of a method that returns a `Result` failed.
#[derive(Clone, Debug)]
pub enum ServiceError<E> {
    /// The method was executed and returned its error.
    Method(E),
    /// The call failed: the network, the server, the deadline, or a handler that panicked.
    Status(Status),
}

impl<E> ServiceError<E> {
    /// Returns whether the request was executed.
    pub const fn execution(&self) -> Execution {
        match self {
            Self::Method(_) => Execution::Executed,
            Self::Status(status) => status.execution(),
        }
    }
}

impl<E> From<Status> for ServiceError<E> {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl<E: fmt::Display> fmt::Display for ServiceError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Method(error) => error.fmt(f),
            Self::Status(status) => status.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for ServiceError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Method(error) => Some(error),
            Self::Status(status) => Some(status),
        }
    }
}
