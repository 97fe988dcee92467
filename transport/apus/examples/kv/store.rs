//! Handling of requests in the key-value store, and the encoding of requests and replies.
//!
//! A request is one byte for the operation, the length of the key in two bytes, the key, and the
//! value if the operation is `PUT`. The reply to `PUT` and `DELETE` is empty. The reply to `GET` is
//! a byte 1 and the value, or empty if there is none.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use apus::{Bytes, Payload};

const GET: u8 = b'G';
const PUT: u8 = b'P';
const DELETE: u8 = b'D';

/// The values by their keys. Both are slices of the requests that delivered them, without a copy.
#[derive(Debug, Default)]
pub(crate) struct Store(RwLock<HashMap<Bytes, Bytes>>);

impl Store {
    /// Executes a request. Returns the reply; `None` if the request is malformed.
    pub(crate) fn execute(&self, request: &Bytes) -> Option<Payload> {
        let (&[operation, high, low], _) = request.split_first_chunk()?;
        let key_ends = 3 + usize::from(u16::from_be_bytes([high, low]));
        let key = 3..key_ends;
        if key_ends > request.len() {
            return None;
        }
        match operation {
            GET => {
                let values = self.0.read().unwrap_or_else(PoisonError::into_inner);
                let value = values.get(&request[key]);
                Some(value.map_or_else(Payload::default, |value| found(value.clone())))
            }
            PUT => {
                let (key, value) = (request.slice(key), request.slice(key_ends..));
                self.0.write().unwrap_or_else(PoisonError::into_inner).insert(key, value);
                Some(Payload::default())
            }
            DELETE => {
                self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&request[key]);
                Some(Payload::default())
            }
            _ => None,
        }
    }
}

/// Returns the reply with a value. Its two slices leave as one message without being joined.
fn found(value: Bytes) -> Payload {
    Payload::from([Bytes::from_static(&[1]), value])
}

/// Returns the value in a reply to `GET`, if there is one.
pub(crate) fn value(reply: &Bytes) -> Option<Bytes> {
    (!reply.is_empty()).then(|| reply.slice(1..))
}

/// Returns the request that a command line of a client means: `get KEY`, `put KEY VALUE` or
/// `delete KEY`.
pub(crate) fn request(words: &[&str]) -> Option<Payload> {
    let (operation, key, value) = match *words {
        ["get", key] => (GET, key, ""),
        ["put", key, value] => (PUT, key, value),
        ["delete", key] => (DELETE, key, ""),
        _ => return None,
    };
    let [high, low] = u16::try_from(key.len()).ok()?.to_be_bytes();
    let head = [&[operation, high, low], key.as_bytes()].concat();
    Some(Payload::from([Bytes::from(head), Bytes::from(value.to_owned())]))
}
