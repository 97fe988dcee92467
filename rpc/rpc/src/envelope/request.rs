//! The envelope of a call.

use super::error::EnvelopeError;
use super::fields::{Fields, metadata_len, put_fixed, put_metadata};
use super::layout::{FIXED_LEN, kind};
use crate::byte_str::ByteStr;
use crate::metadata::Metadata;
use crate::trace_context::TraceContext;
use bytes::{BufMut, Bytes, BytesMut};
use std::time::Duration;

const DEADLINE: u8 = 0x01;
const TRACE: u8 = 0x02;
const METADATA: u8 = 0x04;
const IDEMPOTENT: u8 = 0x08;
const OPEN: u8 = 0x10;
const KNOWN: u8 = DEADLINE | TRACE | METADATA | IDEMPOTENT | OPEN;

/// The header of a call. Without options it takes 8 bytes and the method's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallHead {
    /// Service and method, such as `shop.Orders/place`: 1 to 255 bytes.
    pub method: ByteStr,
    /// Identifies the types of the arguments and results; 0 if the method is not checked. The
    /// response repeats it.
    pub signature: u32,
    /// Time left until the deadline, in microseconds; `None` without a deadline.
    pub time_left: Option<u64>,
    /// The trace that the call belongs to.
    pub trace: Option<TraceContext>,
    /// Named values.
    pub metadata: Metadata,
    /// Whether executing the request twice is harmless.
    pub idempotent: bool,
    /// Whether further messages follow by PUSH.
    pub open: bool,
}

impl CallHead {
    /// Bytes of the longest name of a method.
    pub const MAX_METHOD: usize = 255;

    pub(super) fn parse(fields: &mut Fields) -> Result<Self, EnvelopeError> {
        let flags = fields.flags(KNOWN)?;
        let has = |flag| flags & flag != 0;
        let time_left = if has(DEADLINE) { Some(fields.u64()?) } else { None };
        let trace = if has(TRACE) {
            let mut bytes = [0; TraceContext::LEN];
            bytes.copy_from_slice(&fields.take(TraceContext::LEN)?);
            Some(TraceContext::from_bytes(bytes))
        } else {
            None
        };
        let method = fields.take(usize::from(fields.small()))?;
        let method = ByteStr::from_utf8(method).map_err(|_| EnvelopeError::Method)?;
        if method.as_bytes().is_empty() {
            return Err(EnvelopeError::Method);
        }
        let metadata = if has(METADATA) { fields.metadata()? } else { Metadata::new() };
        Ok(Self {
            method,
            signature: fields.number(),
            time_left,
            trace,
            metadata,
            idempotent: has(IDEMPOTENT),
            open: has(OPEN),
        })
    }

    /// Returns the bytes of the envelope.
    ///
    /// # Errors
    ///
    /// [`EnvelopeError::Method`]: the name of the method is empty or has more than 255 bytes.
    pub fn encode(&self) -> Result<Bytes, EnvelopeError> {
        self.encode_with_room(0).map(BytesMut::freeze)
    }

    /// Returns the bytes of the envelope, with room for `room` more bytes.
    pub(crate) fn encode_with_room(&self, room: usize) -> Result<BytesMut, EnvelopeError> {
        let method = self.method.as_bytes();
        let Ok(length @ 1..) = u8::try_from(method.len()) else {
            return Err(EnvelopeError::Method);
        };
        let mut flags = 0;
        let mut set = |flag, on| flags |= if on { flag } else { 0 };
        set(DEADLINE, self.time_left.is_some());
        set(TRACE, self.trace.is_some());
        set(METADATA, !self.metadata.is_empty());
        set(IDEMPOTENT, self.idempotent);
        set(OPEN, self.open);
        let options = self.time_left.map_or(0, |_| 8)
            + self.trace.map_or(0, |_| TraceContext::LEN)
            + metadata_len(&self.metadata);
        let mut buffer = BytesMut::with_capacity(FIXED_LEN + method.len() + options + room);
        put_fixed(&mut buffer, kind::CALL, flags, length, self.signature);
        if let Some(left) = self.time_left {
            buffer.put_u64_le(left);
        }
        if let Some(trace) = &self.trace {
            buffer.put_slice(trace.as_bytes());
        }
        buffer.put_slice(method);
        put_metadata(&mut buffer, &self.metadata);
        Ok(buffer)
    }

    /// Returns the time left until the deadline.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.time_left.map(Duration::from_micros)
    }
}
