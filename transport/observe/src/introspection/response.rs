//! The body of a response.

use serde::Serialize;

/// The body of a response, or the reason for a refusal.
pub(crate) type Response = Result<Vec<u8>, String>;

/// Returns `value` as JSON.
///
/// # Errors
///
/// It cannot be represented.
pub(crate) fn json(value: &impl Serialize) -> Response {
    serde_json::to_vec(value).map_err(|error| error.to_string())
}
