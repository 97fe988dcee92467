//! Errors of apus as a number, the execution of the request, and text.

use crate::status::Status;
use apus::{
    BindError, CallError, Closed, CommandError, Execution, FailureKind, Refusal, ReplyError,
    RpcError, SettingsError,
};

/// An error in the form for other languages.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    /// The kind of error; never [`Status::Ok`].
    pub status: Status,
    /// Whether the request of a call was executed. [`Execution::NotExecuted`] for operations other
    /// than calls.
    pub execution: Execution,
    /// One line for people.
    pub text: String,
}

impl Failure {
    /// Creates the error of an operation that sent no request.
    pub fn new(status: Status, text: impl Into<String>) -> Self {
        Self { status, execution: Execution::NotExecuted, text: text.into() }
    }

    /// Returns whether the operation may succeed later, because a limit is reached now.
    #[must_use]
    pub const fn is_back_pressure(&self) -> bool {
        matches!(self.status, Status::NoRoom)
    }
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Self {
        let status = match error.kind {
            FailureKind::PeerSilent { .. } => Status::PeerSilent,
            FailureKind::PortClosed => Status::PortClosed,
            FailureKind::ProtocolUnreachable => Status::ProtocolUnreachable,
            FailureKind::HostUnreachable => Status::HostUnreachable,
            FailureKind::NotPermitted => Status::NotPermitted,
            FailureKind::PeerRestarted => Status::PeerRestarted,
            FailureKind::ResponseLost => Status::ResponseLost,
            FailureKind::Refused(refusal) => refused(refusal),
            FailureKind::PeerTooOld => Status::PeerTooOld,
            FailureKind::ResponseTooLarge { .. } => Status::ResponseTooLarge,
            FailureKind::PeerEnded => Status::PeerEnded,
            FailureKind::ProtocolBroken => Status::ProtocolBroken,
            FailureKind::DeadlineExceeded => Status::DeadlineExceeded,
            FailureKind::Cancelled => Status::Cancelled,
            FailureKind::ShutDown => Status::ShutDown,
            FailureKind::Untrusted => Status::Untrusted,
            _ => Status::Other,
        };
        Self { status, execution: error.execution, text: error.to_string() }
    }
}

const fn refused(refusal: Refusal) -> Status {
    match refusal {
        Refusal::Overloaded => Status::Overloaded,
        Refusal::TooLarge => Status::RequestTooLarge,
        Refusal::NotServing => Status::NotServing,
        Refusal::ShuttingDown => Status::PeerShuttingDown,
        Refusal::Abandoned => Status::Abandoned,
        Refusal::ClientTooOld => Status::ClientTooOld,
        Refusal::ResponseTooLarge => Status::ResponseTooLarge,
    }
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        let status = match error {
            CommandError::EmptyMessage => Status::EmptyMessage,
            CommandError::TooLarge { .. } => Status::MessageTooLarge,
            CommandError::ShutDown => Status::Closed,
            CommandError::UnknownRpc => Status::ClientGone,
            CommandError::NoHost | CommandError::NeedsInterface => Status::AddressUnresolved,
            _ if error.is_back_pressure() => Status::NoRoom,
            _ => Status::Other,
        };
        Self::new(status, error.to_string())
    }
}

impl From<Closed> for Failure {
    fn from(closed: Closed) -> Self {
        let status = match closed {
            Closed::Driver(_) => Status::DriverFailed,
            _ => Status::Closed,
        };
        Self::new(status, closed.to_string())
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Failed(error) => error.into(),
            CallError::Rejected(error) => error.into(),
            CallError::Closed(closed) => closed.into(),
            CallError::Interrupted { .. } => Self {
                status: Status::DriverFailed,
                execution: error.execution(),
                text: error.to_string(),
            },
            other => Self {
                status: Status::Other,
                execution: other.execution(),
                text: other.to_string(),
            },
        }
    }
}

impl From<ReplyError> for Failure {
    fn from(error: ReplyError) -> Self {
        match error {
            ReplyError::ClientGone => Self::new(Status::ClientGone, error.to_string()),
            ReplyError::Rejected(error) => error.into(),
            ReplyError::Closed(closed) => closed.into(),
            ReplyError::GivenUp => Self::new(Status::Cancelled, error.to_string()),
            other => Self::new(Status::Other, other.to_string()),
        }
    }
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        let status = match error {
            BindError::Resolve { .. } => Status::AddressUnresolved,
            BindError::Config(_) => Status::InvalidOptions,
            _ => Status::OpenFailed,
        };
        Self::new(status, error.to_string())
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::new(Status::InvalidOptions, error.to_string())
    }
}
