//! Conversion between HTTP headers and metadata.

use crate::timeout::GRPC_TIMEOUT;
use apus_rpc::{Code, Metadata, Status};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE, USER_AGENT};

/// The HTTP header of a trace; here the envelope carries it.
pub(crate) const TRACEPARENT: &str = "traceparent";

/// Headers of gRPC that carry a status.
const STATUS_HEADERS: [&str; 3] = ["grpc-status", "grpc-message", "grpc-status-details-bin"];

/// The content type of all bodies.
pub(crate) const APPLICATION_GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// Returns whether a header belongs to HTTP or to the envelope, so that it is not sent as metadata.
fn is_own(name: &HeaderName) -> bool {
    [CONTENT_TYPE, TE, USER_AGENT].contains(name)
        || [GRPC_TIMEOUT, TRACEPARENT].contains(&name.as_str())
        || STATUS_HEADERS.contains(&name.as_str())
}

/// Returns headers as metadata.
pub(crate) fn to_metadata(headers: &HeaderMap) -> Result<Metadata, Status> {
    let mut metadata = Metadata::new();
    for (name, value) in headers {
        if !is_own(name) {
            let value = Bytes::copy_from_slice(value.as_bytes());
            metadata.append(name.as_str(), value).map_err(|error| {
                let message = format!("metadata {name}: {error}");
                Status::not_executed(Code::ResourceExhausted, message)
            })?;
        }
    }
    Ok(metadata)
}

/// Returns as much of the headers as fits into metadata, and the length of all their names and
/// values.
pub(crate) fn to_fitting_metadata(headers: &HeaderMap) -> (Metadata, usize) {
    let (mut metadata, mut length) = (Metadata::new(), 0);
    for (name, value) in headers.iter().filter(|(name, _)| !is_own(name)) {
        length += name.as_str().len() + value.len();
        // Shorter values that follow may fit.
        let _ = metadata.append(name.as_str(), Bytes::copy_from_slice(value.as_bytes()));
    }
    (metadata, length)
}

/// Appends metadata to headers. Skips names and values that are invalid in HTTP, which only a peer
/// without this crate sends.
pub(crate) fn append(headers: &mut HeaderMap, metadata: &Metadata) {
    headers.reserve(metadata.len());
    for (name, value) in metadata.iter() {
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_maybe_shared(value.clone());
        if let (Ok(name), Ok(value)) = (name, value)
            && !is_own(&name)
        {
            headers.append(name, value);
        }
    }
}
