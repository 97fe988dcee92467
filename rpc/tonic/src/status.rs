//! Statuses of tonic and of `apus-rpc`: the same codes, plus the execution of the call.

use apus_rpc::{Code, Execution, Status};
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
///
/// A response that the client's own decoder refuses, for example because it is longer than its
/// `max_decoding_message_size`, was executed.
#[must_use]
pub fn execution(status: &tonic::Status) -> Execution {
    match status.metadata().get(EXECUTION).map(MetadataValue::as_bytes) {
        Some(b"not-executed") => Execution::NotExecuted,
        Some(b"executed") => Execution::Executed,
        // Statuses that arrive through a channel of this crate have the metadata.
        None if is_of_decoder(status) => Execution::Executed,
        _ => Execution::Unknown,
    }
}

/// Returns whether tonic's decoder, or prost's, made this status: a message was too long or
/// malformed. They have no other sign than their text (tonic 0.14 `codec/decode.rs`, tonic-prost
/// `codec.rs`).
pub(crate) fn is_of_decoder(status: &tonic::Status) -> bool {
    let text = status.message();
    match status.code() {
        tonic::Code::OutOfRange => text.starts_with("Error, decoded message length too large"),
        tonic::Code::Internal => text.starts_with("failed to decode Protobuf message"),
        tonic::Code::ResourceExhausted => text.starts_with("Error decompressing: size limit"),
        _ => false,
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
    let converted = Status::new(code, status.message())
        .with_details(bytes::Bytes::copy_from_slice(status.details()));
    // Metadata that is too large is cut, so that the status still reaches the client.
    match crate::headers::to_metadata(&headers) {
        Ok(metadata) => converted.with_metadata(metadata),
        Err(_) => {
            let (metadata, length) = crate::headers::to_fitting_metadata(&headers);
            converted.with_metadata(metadata).with_truncated("metadata", length)
        }
    }
}
