//! Status codes.

use std::fmt;

/// The outcome of a call. Numbers and names are gRPC's (the page "Status codes and their use in
/// gRPC"), so that gateways and people need no second table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Code {
    /// The call succeeded.
    #[default]
    Ok = 0,
    /// The caller cancelled the call.
    Cancelled = 1,
    /// No better code is known.
    Unknown = 2,
    /// The request is invalid in any state of the server.
    InvalidArgument = 3,
    /// The deadline of the call passed.
    DeadlineExceeded = 4,
    /// The requested entity does not exist.
    NotFound = 5,
    /// The entity to be created exists already.
    AlreadyExists = 6,
    /// The caller lacks the permission.
    PermissionDenied = 7,
    /// A quota, a limit or memory is exhausted.
    ResourceExhausted = 8,
    /// The state of the server does not allow the request, or client and server were built from
    /// different services.
    FailedPrecondition = 9,
    /// The operation was aborted, for example by a conflict.
    Aborted = 10,
    /// The request is past the valid range.
    OutOfRange = 11,
    /// The server does not have the method.
    Unimplemented = 12,
    /// The server is broken, for example because the handler panicked.
    Internal = 13,
    /// The server cannot be reached, is draining, or is not ready.
    Unavailable = 14,
    /// Data was lost.
    DataLoss = 15,
    /// The caller has not proved its identity.
    Unauthenticated = 16,
}

impl Code {
    /// All codes, by number.
    pub const ALL: [Self; 17] = [
        Self::Ok,
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// Returns the code with this number; [`Code::Unknown`] if there is none.
    #[must_use]
    pub const fn from_number(number: u8) -> Self {
        if (number as usize) < Self::ALL.len() { Self::ALL[number as usize] } else { Self::Unknown }
    }

    /// Returns the number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the name as gRPC spells it, such as `NOT_FOUND`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Aborted => "ABORTED",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
            Self::DataLoss => "DATA_LOSS",
            Self::Unauthenticated => "UNAUTHENTICATED",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
