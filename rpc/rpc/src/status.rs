//! The status of a failed call: the reason, and whether it was executed.

use crate::code::Code;
use crate::metadata::Metadata;
use apus::{CallError, Closed, CommandError, Execution, FailureKind};
use bytes::Bytes;

/// The reason why a call failed: a code, a message for people, details for programs, and whether
/// the request was executed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{code}: {message} ({execution})")]
pub struct Status {
    code: Code,
    message: String,
    details: Bytes,
    metadata: Box<Metadata>,
    execution: Execution,
    back_pressure: bool,
}

impl Status {
    /// Maximum length of a message on the wire; longer messages are cut, and
    /// [marked](Status::TRUNCATED). Chosen by us: a message is
    /// for a line of a log.
    pub const MAX_MESSAGE: usize = 4_096;

    /// Maximum length of details on the wire; longer details are omitted, which is
    /// [marked](Status::TRUNCATED).
    pub const MAX_DETAILS: usize = 32_768;

    /// Name of the metadata that marks a shortened status. There is one value for each part that
    /// was too long for the wire: `message`, `details` or `metadata`, `=`, and its original length
    /// in bytes, such as `details=40000`.
    pub const TRUNCATED: &'static str = "apus-truncated";

    /// Creates the failure of an executed request, as reported by a handler.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: Bytes::new(),
            metadata: Box::default(),
            execution: Execution::Executed,
            back_pressure: false,
        }
    }

    /// Creates the failure of a request that was not executed: calling again, at another server, is
    /// safe.
    pub fn not_executed(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, message).with_execution(Execution::NotExecuted)
    }

    /// Sets whether the request was executed.
    #[must_use]
    pub const fn with_execution(mut self, execution: Execution) -> Self {
        self.execution = execution;
        self
    }

    /// Adds details for programs, up to [`Status::MAX_DETAILS`] bytes.
    #[must_use]
    pub fn with_details(mut self, details: impl Into<Bytes>) -> Self {
        self.details = details.into();
        self
    }

    /// Adds metadata that is sent with the status.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Metadata) -> Self {
        *self.metadata = metadata;
        self
    }

    /// Marks the status as shortened: `part` had `length` bytes ([`Status::TRUNCATED`]). Values of
    /// metadata at the end make room for the mark.
    #[must_use]
    pub fn with_truncated(mut self, part: &str, length: usize) -> Self {
        self.mark_truncated(part, length);
        self
    }

    fn mark_truncated(&mut self, part: &str, length: usize) {
        let before = self.metadata.encoded_len();
        let mut has_room = true;
        let mark = |part: &str, length: usize| format!("{part}={length}").into_bytes();
        while self.metadata.append(Self::TRUNCATED, mark(part, length)).is_err() {
            has_room = false;
            if !self.metadata.remove_last_except(Self::TRUNCATED) {
                return;
            }
        }
        if !has_room {
            self.mark_truncated("metadata", before);
        }
    }

    /// Returns whether a part of the status was too long for the wire; its metadata
    /// [`Status::TRUNCATED`] has the details.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.metadata.get(Self::TRUNCATED).is_some()
    }

    /// Returns the status in the form in which it fits on the wire, if it has to be shortened.
    pub(crate) fn shortened(&self) -> Option<Self> {
        let (message, details) = (self.message.len(), self.details.len());
        if message <= Self::MAX_MESSAGE && details <= Self::MAX_DETAILS {
            return None;
        }
        let mut short = self.clone();
        if message > Self::MAX_MESSAGE {
            let mut end = Self::MAX_MESSAGE;
            while !self.message.is_char_boundary(end) {
                end -= 1;
            }
            short.message.truncate(end);
            short.mark_truncated("message", message);
        }
        if details > Self::MAX_DETAILS {
            short.details = Bytes::new();
            short.mark_truncated("details", details);
        }
        Some(short)
    }

    /// Returns the code.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// Returns the message for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the details for programs; empty if there are none.
    #[must_use]
    pub const fn details(&self) -> &Bytes {
        &self.details
    }

    /// Returns the metadata received with the status.
    #[must_use]
    pub const fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns whether the request was executed. [`Execution::NotExecuted`] means that it was not
    /// and never will be, so calling again is safe.
    #[must_use]
    pub const fn execution(&self) -> Execution {
        self.execution
    }

    /// Returns whether this process had no room to send the call, so a later attempt may succeed.
    #[must_use]
    pub const fn is_back_pressure(&self) -> bool {
        self.back_pressure
    }
}

impl From<CallError> for Status {
    /// Maps the transport's failure to a code, and keeps its execution.
    fn from(error: CallError) -> Self {
        let code = match &error {
            CallError::Failed(failed) => code_of(failed.kind, failed.execution),
            CallError::Rejected(
                CommandError::TooLarge { .. }
                | CommandError::EmptyMessage
                | CommandError::NoHost
                | CommandError::NeedsInterface,
            ) => Code::InvalidArgument,
            CallError::Rejected(_) => Code::ResourceExhausted,
            CallError::Interrupted { execution, .. } => code_of(FailureKind::ShutDown, *execution),
            // In a child of a fork no other attempt would succeed.
            CallError::Closed(Closed::Forked(_)) => Code::FailedPrecondition,
            _ => Code::Unavailable,
        };
        let back_pressure = error.is_back_pressure();
        // The execution of the status is shown after its message.
        let message = match &error {
            CallError::Failed(failed) => failed.kind.to_string(),
            CallError::Interrupted { why, .. } => why.to_string(),
            error => error.to_string(),
        };
        Self { back_pressure, ..Self::new(code, message) }.with_execution(error.execution())
    }
}

/// Returns the code of a failure. A request that was certainly not executed gets
/// [`Code::Unavailable`]: another server may execute it.
const fn code_of(kind: FailureKind, execution: Execution) -> Code {
    match (kind, execution) {
        (FailureKind::DeadlineExceeded, _) => Code::DeadlineExceeded,
        (FailureKind::Cancelled, _) => Code::Cancelled,
        (FailureKind::Refused(apus::Refusal::Overloaded), _) => Code::ResourceExhausted,
        (FailureKind::ResponseTooLarge { .. }, _) => Code::ResourceExhausted,
        (FailureKind::Refused(apus::Refusal::ResponseTooLarge), _) => Code::ResourceExhausted,
        (FailureKind::PeerTooOld, _) => Code::Unimplemented,
        (_, Execution::NotExecuted) => Code::Unavailable,
        _ => Code::Unknown,
    }
}
