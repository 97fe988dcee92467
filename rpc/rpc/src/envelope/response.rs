//! The envelope of a response.

use super::error::EnvelopeError;
use super::fields::{Fields, metadata_len, put_fixed, put_metadata};
use super::layout::{FIXED_LEN, kind};
use crate::code::Code;
use crate::metadata::Metadata;
use crate::status::Status;
use apus::Execution;
use bytes::{BufMut, Bytes, BytesMut};

const NOT_EXECUTED: u8 = 0x01;
const HEAD: u8 = 0x02;
const METADATA: u8 = 0x04;
const TEXT: u8 = 0x08;
const MORE: u8 = 0x10;
const TRAILERS: u8 = 0x20;
const METHOD_ERROR: u8 = 0x40;
const KNOWN: u8 = NOT_EXECUTED | HEAD | METADATA | TEXT | MORE | TRAILERS | METHOD_ERROR;

/// The header of a response. Without options it takes 8 bytes.
#[derive(Clone, Debug, Default)]
pub struct ResponseHead {
    /// The signature of the answered call, or the number of the answered PUSH or PULL.
    pub echo: u32,
    /// The metadata of the response, if this is its start.
    pub head: Option<Metadata>,
    /// The stream with the rest of the response; `None` if it ends here.
    pub more: Option<u64>,
    /// Trailers: metadata after the payload.
    pub trailers: Metadata,
    /// Why the call failed; `None` if it did not.
    pub status: Option<Status>,
    /// Whether the payload is the error type of the method rather than its result.
    pub method_error: bool,
}

impl ResponseHead {
    /// Parses a response. The payload shares the memory of `message`.
    ///
    /// # Errors
    ///
    /// [`EnvelopeError`]: the message is not a response of this version.
    pub fn parse(message: Bytes) -> Result<(Self, Bytes), EnvelopeError> {
        let mut fields = Fields::new(message)?;
        if fields.kind() != kind::RESPONSE {
            return Err(EnvelopeError::Kind(fields.kind()));
        }
        let flags = fields.flags(KNOWN)?;
        let has = |flag| flags & flag != 0;
        let number = fields.small();
        if usize::from(number) >= Code::ALL.len() {
            return Err(EnvelopeError::Status);
        }
        let code = Code::from_number(number);
        let failed = code != Code::Ok;
        let contradicts = if failed {
            has(MORE) || has(METHOD_ERROR)
        } else {
            has(TEXT) || has(NOT_EXECUTED) || (has(MORE) && has(TRAILERS))
        };
        if contradicts || (has(METADATA) && !has(HEAD)) {
            return Err(EnvelopeError::Status);
        }
        let more = if has(MORE) { Some(fields.u64()?) } else { None };
        let (message, details) = if has(TEXT) {
            let length = usize::from(fields.u16()?);
            let text = fields.take(length)?;
            let text = std::str::from_utf8(&text).map_err(|_| EnvelopeError::Status)?.to_owned();
            let length = usize::from(fields.u16()?);
            (text, fields.take(length)?)
        } else {
            (String::new(), Bytes::new())
        };
        let mut metadata = |there| if there { fields.metadata() } else { Ok(Metadata::new()) };
        let initial = metadata(has(METADATA))?;
        let trailers = metadata(has(TRAILERS))?;
        let execution =
            if has(NOT_EXECUTED) { Execution::NotExecuted } else { Execution::Executed };
        let status = failed.then(|| {
            Status::new(code, message)
                .with_details(details)
                .with_metadata(trailers.clone())
                .with_execution(execution)
        });
        let head = Self {
            echo: fields.number(),
            head: has(HEAD).then_some(initial),
            more,
            trailers,
            status,
            method_error: has(METHOD_ERROR),
        };
        Ok((head, fields.rest()))
    }

    /// Returns the bytes of the envelope. The metadata of a failed response's status is sent as
    /// trailers. A status that is too long is shortened, and [marked](Status::TRUNCATED).
    #[must_use]
    pub fn encode(&self) -> Bytes {
        self.encode_with_room(0).freeze()
    }

    /// Returns the bytes of the envelope, with room for `room` more bytes.
    pub(crate) fn encode_with_room(&self, room: usize) -> BytesMut {
        let shortened = self.status.as_ref().and_then(Status::shortened);
        let status = shortened.as_ref().or(self.status.as_ref());
        let code = status.map_or(Code::Ok, Status::code);
        let failed = code != Code::Ok;
        let status = status.filter(|_| failed);
        let trailers = status.map_or(&self.trailers, Status::metadata);
        let text = status.map_or("", Status::message);
        let details: &[u8] = status.map_or(&[], |status| status.details());
        let has_text = !text.is_empty() || !details.is_empty();
        let no_metadata = Metadata::new();
        let initial = self.head.as_ref().unwrap_or(&no_metadata);
        let more = self.more.filter(|_| !failed);
        let not_executed =
            status.is_some_and(|status| status.execution() == Execution::NotExecuted);
        let has_trailers = !trailers.is_empty() && more.is_none();

        let mut flags = 0;
        let mut set = |flag, on| flags |= if on { flag } else { 0 };
        set(NOT_EXECUTED, not_executed);
        set(HEAD, self.head.is_some());
        set(METADATA, !initial.is_empty());
        set(TEXT, has_text);
        set(MORE, more.is_some());
        set(TRAILERS, has_trailers);
        set(METHOD_ERROR, self.method_error && !failed);
        let texts = if has_text { 4 + text.len() + details.len() } else { 0 };
        let size = FIXED_LEN
            + more.map_or(0, |_| 8)
            + texts
            + metadata_len(initial)
            + metadata_len(trailers);
        let mut buffer = BytesMut::with_capacity(size + room);
        put_fixed(&mut buffer, kind::RESPONSE, flags, code.number(), self.echo);
        if let Some(stream) = more {
            buffer.put_u64_le(stream);
        }
        if has_text {
            buffer.put_u16_le(text.len() as u16);
            buffer.put_slice(text.as_bytes());
            buffer.put_u16_le(details.len() as u16);
            buffer.put_slice(details);
        }
        put_metadata(&mut buffer, initial);
        if has_trailers {
            put_metadata(&mut buffer, trailers);
        }
        buffer
    }
}
