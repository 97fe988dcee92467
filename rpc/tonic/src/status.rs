//! Statuses of tonic and of `apus-rpc`: the same codes, and what is known about the execution.

use apus_rpc::{Code, Execution, Metadata, Status};
use http::HeaderMap;
use tonic::metadata::{Ascii, MetadataValue};

/// Name of the metadata of a failed call that says whether it was executed; [`execution`] reads it.
pub const EXECUTION: &str = "apus-execution";

/// Returns what is known about the execution of a call that failed with this status, at a client of this crate. A
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

/// Returns a status as tonic has it.
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

/// Returns a status of a handler of tonic.
pub(crate) fn from_tonic(status: &tonic::Status) -> Status {
    let code = Code::from_number(status.code() as i32 as u8);
    let headers = status.metadata().clone().into_headers();
    // Metadata that is too large does not keep the status from its client.
    let metadata = crate::headers::to_metadata(&headers).unwrap_or_else(|_| Metadata::new());
    Status::new(code, status.message())
        .with_details(bytes::Bytes::copy_from_slice(status.details()))
        .with_metadata(metadata)
}
