//! Statuses of tonic and of `apus-rpc`: the same codes, plus the execution of the call.

use apus_rpc::{Code, Execution, Metadata, Status};
use http::HeaderMap;
use tonic::metadata::{Ascii, MetadataValue};

/// Metadata name under which a failed call states whether it was executed; [`execution`] reads it.
pub const EXECUTION: &str = "apus-execution";

/// Returns whether a call that failed with this status was executed, at a client of this crate. A
/// call that was not executed may be made again, at another server.
///
/// ```
/// use apus_rpc::Execution;
///
/// fn may_be_sent_elsewhere(status: &tonic::Status) -> bool {
///     apus_tonic::execution(status) == Execution::NotExecuted
/// }
/// # assert!(!may_be_sent_elsewhere(&tonic::Status::not_found("")));
/// ```
#[must_use]
pub fn execution(status: &tonic::Status) -> Execution {
    match status.metadata().get(EXECUTION).map(MetadataValue::as_bytes) {
        Some(b"not-executed") => Execution::NotExecuted,
        Some(b"executed") => Execution::Executed,
        _ => Execution::Unknown,
    }
}

/// Converts a status to tonic.
pub(crate) fn to_tonic(status: &Status) -> tonic::Status {
    let mut headers = HeaderMap::new();
    crate::headers::append(&mut headers, status.metadata());
    let mut metadata = tonic::metadata::MetadataMap::from_headers(headers);
    let execution = match status.execution() {
        Execution::NotExecuted => "not-executed",
        Execution::Executed => "executed",
        Execution::Unknown => "unknown",
    };
    metadata.insert(EXECUTION, MetadataValue::<Ascii>::from_static(execution));
    let code = tonic::Code::from_i32(i32::from(status.code().number()));
    let (message, details) = (status.message(), status.details().clone());
    tonic::Status::with_details_and_metadata(code, message, details, metadata)
}

/// Converts a status of a tonic handler.
pub(crate) fn from_tonic(status: &tonic::Status) -> Status {
    let code = Code::from_number(status.code() as i32 as u8);
    let headers = status.metadata().clone().into_headers();
    // Too large metadata is dropped, so that the status still reaches the client.
    let metadata = crate::headers::to_metadata(&headers).unwrap_or_else(|_| Metadata::new());
    Status::new(code, status.message())
        .with_details(bytes::Bytes::copy_from_slice(status.details()))
        .with_metadata(metadata)
}
