//! The body of a response, made and read.

use crate::introspection::process::Error;
use crate::introspection::process_state::ProcessState;
use serde::{Deserialize, Serialize};

/// Longest first line of a response, in bytes.
const MAX_HEAD: usize = 64 * 1024;

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

/// The first line of a response.
#[derive(Deserialize)]
struct Head {
    ok: bool,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    error: String,
}

/// Returns the body of the response of process `pid`.
///
/// # Errors
///
/// The process has refused the request, or the response is cut or invalid.
pub(super) fn body(pid: u32, mut response: Vec<u8>) -> Result<Vec<u8>, Error> {
    let invalid = |message| Error::InvalidResponse { pid, message };
    let end = response.iter().take(MAX_HEAD).position(|byte| *byte == b'\n');
    let body = response.split_off(end.map_or(response.len(), |end| end + 1));
    let head: Head =
        serde_json::from_slice(&response).map_err(|error| invalid(error.to_string()))?;
    if !head.ok {
        return Err(Error::Refused { pid, message: head.error });
    }
    match body.len() as u64 {
        length if length == head.bytes => Ok(body),
        _ if ProcessState::of(pid) == ProcessState::Ended => Err(Error::Ended { pid }),
        length => Err(invalid(format!("{length} bytes of {}", head.bytes))),
    }
}
