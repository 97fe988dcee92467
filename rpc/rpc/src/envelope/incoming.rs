//! Messages that a server receives: a call, or a step of a stream.

use super::error::EnvelopeError;
use super::fields::Fields;
use super::layout::kind;
use super::request::CallHead;
use super::stream::StreamHead;
use bytes::Bytes;

/// A message received by a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestEnvelope {
    /// A call, and its payload.
    Call(CallHead, Bytes),
    /// A step of a stream, and its payload.
    Stream(StreamHead, Bytes),
}

impl RequestEnvelope {
    /// Parses a request. The payload shares the memory of `message`.
    ///
    /// # Errors
    ///
    /// [`EnvelopeError`]: the message is not a request of this version.
    pub fn parse(message: Bytes) -> Result<Self, EnvelopeError> {
        let mut fields = Fields::new(message)?;
        match fields.kind() {
            kind::CALL => {
                let head = CallHead::parse(&mut fields)?;
                Ok(Self::Call(head, fields.rest()))
            }
            kind::PUSH | kind::PULL | kind::CANCEL => {
                let head = StreamHead::parse(&mut fields)?;
                Ok(Self::Stream(head, fields.rest()))
            }
            other => Err(EnvelopeError::Kind(other)),
        }
    }
}
