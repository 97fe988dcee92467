//! Messages as bytes: a header and a payload.
//!
//! ```text
//!   0        4                4 + n
//!   ├────────┼────────────────┼───────────────────┤
//!   │ n (LE) │ header: n bytes│ payload: the rest │
//!   └────────┴────────────────┴───────────────────┘
//! ```

use bytes::{Buf, Bytes};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::wire::callback::{Callback, CallbackResponse};
use crate::wire::check::{Check, Lie};
use crate::wire::limits::{MAX_HEADER, MAX_PAYLOAD};
use crate::wire::request::{Hello, Request};
use crate::wire::response::Response;

/// Bytes before the header.
const PREFIX: usize = 4;

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It ends before its header does.
    #[error("the message ends before its header does")]
    Truncated,
    /// Header or payload are longer than any message's.
    #[error("header or payload are too long")]
    TooLong,
    /// The header is none of this type.
    #[error("the header is malformed")]
    Malformed,
    /// The header is well-formed, and its contents are impossible.
    #[error("{0}")]
    Lie(Lie),
}

/// A type of message.
pub trait Message: Serialize + DeserializeOwned + Check {}

impl Message for Request {}
impl Message for Response {}
impl Message for Callback {}
impl Message for CallbackResponse {}

/// A message that was decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded<M> {
    /// The contents of its header.
    pub message: M,
    /// Its payload, not copied.
    pub payload: Bytes,
}

/// Whom a request of a client is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addressee {
    /// The export with this name, to start a session.
    Export(Bytes),
    /// The export of this session.
    Session(u64),
}

/// The prefix of a request that routes it.
#[derive(Deserialize)]
enum Start {
    Hello(Hello),
    Of { session: u64 },
}

impl Addressee {
    /// Returns the destination of a request, without decoding the rest; `None` if it names neither
    /// a session nor an export.
    pub fn of(message: &[u8]) -> Option<Self> {
        let (start, _) = postcard::take_from_bytes(message.get(PREFIX..)?).ok()?;
        Some(match start {
            Start::Hello(hello) => Self::Export(hello.export),
            Start::Of { session } => Self::Session(session),
        })
    }
}

/// Returns prefix and header of a message. The payload follows them.
///
/// # Panics
///
/// If the message exceeds [`limits`](crate::wire::limits): its sender must split it.
pub fn encode<M: Message>(message: &M) -> Bytes {
    let mut header = postcard::to_extend(message, vec![0; PREFIX]).expect("vectors grow");
    let length = header.len() - PREFIX;
    assert!(length <= MAX_HEADER, "the message has a header of {length} bytes");
    header[..PREFIX].copy_from_slice(&(length as u32).to_le_bytes());
    header.into()
}

/// Decodes a message and checks it.
///
/// # Errors
///
/// Returns why the bytes are no message of this type.
pub fn decode<M: Message>(mut bytes: Bytes) -> Result<Decoded<M>, WireError> {
    if bytes.len() < PREFIX {
        return Err(WireError::Truncated);
    }
    let length = bytes.get_u32_le() as usize;
    if length > bytes.len() {
        return Err(WireError::Truncated);
    }
    let header = bytes.split_to(length);
    if length > MAX_HEADER || bytes.len() > MAX_PAYLOAD {
        return Err(WireError::TooLong);
    }
    let (message, rest) =
        postcard::take_from_bytes::<M>(&header).map_err(|_| WireError::Malformed)?;
    if !rest.is_empty() {
        return Err(WireError::Malformed);
    }
    message.check(bytes.len()).map_err(WireError::Lie)?;
    Ok(Decoded { message, payload: bytes })
}
