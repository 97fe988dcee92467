//! Parts of a typed stream: each is a length of four bytes and a value.

use super::codec::{Codec, CodecError, Message};
use crate::body::{Body, Frame};
use crate::code::Code;
use crate::status::Status;
use bytes::{Buf, Bytes, BytesMut};
use futures_core::Stream;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Maximum length of a part: 64 MB, as for messages of the transport.
pub(super) const MAX_PART: usize = 64 << 20;

/// Returns the bytes of a part.
pub(super) fn frame<C: Codec, T: Message>(value: &T) -> Result<Bytes, CodecError> {
    let mut bytes = C::encode(value, vec![0; 4])?;
    let length = (bytes.len() - 4) as u32;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    Ok(bytes.into())
}

/// Extracts parts from a body with arbitrary frame boundaries.
pub(super) struct Parts {
    body: Body,
    buffer: BytesMut,
    ended: bool,
}

impl Parts {
    pub(super) fn new(body: Body) -> Self {
        Self { body, buffer: BytesMut::new(), ended: false }
    }

    /// Returns the bytes of the next part.
    pub(super) fn poll_part(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Status>>> {
        loop {
            match self.buffered() {
                Ok(None) if self.ended => return Poll::Ready(self.last()),
                Ok(None) => {}
                Ok(Some(part)) => return Poll::Ready(Some(Ok(part))),
                Err(status) => return Poll::Ready(Some(Err(self.fail(status)))),
            }
            match std::task::ready!(Pin::new(&mut self.body).poll_next(cx)) {
                Some(Ok(Frame::Data(data))) => self.buffer.extend_from_slice(&data),
                Some(Ok(Frame::Trailers(_))) => {}
                Some(Err(status)) => return Poll::Ready(Some(Err(self.fail(status)))),
                None => self.ended = true,
            }
        }
    }

    fn buffered(&mut self) -> Result<Option<Bytes>, Status> {
        let Some(length) = self.buffer.first_chunk().map(|length| u32::from_le_bytes(*length))
        else {
            return Ok(None);
        };
        let length = length as usize;
        if length > MAX_PART {
            let message =
                format!("a part of the stream has {length} bytes, the limit is {MAX_PART}");
            return Err(Status::new(Code::ResourceExhausted, message));
        }
        if self.buffer.len() < 4 + length {
            return Ok(None);
        }
        self.buffer.advance(4);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }

    /// Returns the outcome at the end of the body.
    fn last(&mut self) -> Option<Result<Bytes, Status>> {
        if self.buffer.is_empty() {
            return None;
        }
        let message = "the stream ended within a part";
        Some(Err(self.fail(Status::new(Code::DataLoss, message))))
    }

    fn fail(&mut self, status: Status) -> Status {
        self.ended = true;
        self.buffer.clear();
        self.body = Body::empty();
        status
    }
}
