//! The content of a request or a response: one message, or parts that arrive over time.

use crate::code::Code;
use crate::metadata::Metadata;
use crate::pieces::Pieces;
use crate::status::Status;
use apus::Payload;
use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A part of a [`Body`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Bytes. Their boundaries are not significant: parts may be joined in transit.
    Data(Bytes),
    /// Metadata that ends the body.
    Trailers(Metadata),
}

type Parts = Pin<Box<dyn Stream<Item = Result<Frame, Status>> + Send>>;

/// The content of a request or a response. A body is *complete* if all of it is in memory;
/// otherwise the rest is a stream.
///
/// A body is itself a stream of [`Frame`]s.
#[derive(Default)]
pub struct Body {
    ready: Pieces,
    rest: Option<Parts>,
    trailers: Metadata,
}

impl Body {
    /// Returns a body without content.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Returns a body of the parts that `parts` yields. An error ends it, as trailers do.
    pub fn stream(parts: impl Stream<Item = Result<Frame, Status>> + Send + 'static) -> Self {
        Self { rest: Some(Box::pin(parts)), ..Self::default() }
    }

    /// Returns a body that starts with `data`.
    pub(crate) fn followed_by(
        data: Bytes,
        parts: impl Stream<Item = Result<Frame, Status>> + Send + 'static,
    ) -> Self {
        let mut body = Self::stream(parts);
        body.push(data);
        body
    }

    /// Returns the data that `body` has in memory, followed by a failure.
    pub(crate) fn failing(body: Self, status: Status) -> Self {
        Self { rest: Some(Box::pin(Failure(Some(status)))), ..body }
    }

    /// Returns whether all of the body is in memory.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.rest.is_none()
    }

    /// Returns the number of bytes in memory.
    #[must_use]
    pub const fn ready_len(&self) -> usize {
        self.ready.len()
    }

    /// Sets the metadata after the content of a complete body.
    #[must_use]
    pub fn with_trailers(mut self, trailers: Metadata) -> Self {
        self.trailers = trailers;
        self
    }

    /// Returns the metadata after the content of a complete body. A stream yields it as a frame.
    #[must_use]
    pub const fn trailers(&self) -> &Metadata {
        &self.trailers
    }

    /// Takes the metadata after the content of a complete body.
    pub(crate) fn into_trailers(self) -> Metadata {
        self.trailers
    }

    /// Returns a copy that shares the memory, if the body is complete.
    #[must_use]
    pub fn try_clone(&self) -> Option<Self> {
        self.is_complete().then(|| Self {
            ready: self.ready.clone(),
            rest: None,
            trailers: self.trailers.clone(),
        })
    }

    /// Waits for the next part. `None` ends the body.
    ///
    /// # Errors
    ///
    /// The status that ends the body early.
    pub async fn next(&mut self) -> Option<Result<Frame, Status>> {
        std::future::poll_fn(|cx| self.poll_part(cx)).await
    }

    /// Waits for the whole body, and returns it as one message. Content in one piece is not copied.
    ///
    /// # Errors
    ///
    /// The status that ends the body early; [`Code::ResourceExhausted`] if it has more
    /// than `limit` bytes.
    pub async fn into_bytes(mut self, limit: usize) -> Result<Bytes, Status> {
        if self.is_complete() && self.ready.count() < 2 && self.ready.len() <= limit {
            return Ok(self.ready.pop().unwrap_or_default());
        }
        let mut all = BytesMut::new();
        while let Some(frame) = self.next().await {
            if let Frame::Data(data) = frame? {
                if all.len() + data.len() > limit {
                    let length = all.len() + data.len() + self.ready_len();
                    let least = if self.is_complete() { "" } else { "at least " };
                    let message =
                        format!("the message has {least}{length} bytes, the limit is {limit}");
                    return Err(Status::new(Code::ResourceExhausted, message));
                }
                all.extend_from_slice(&data);
            }
        }
        Ok(all.freeze())
    }

    /// Reads the immediately available parts into memory until the body pauses, ends, or has
    /// `limit` bytes in more than one piece. After a single piece of any length it still polls for
    /// the end.
    pub(crate) fn poll_gather(&mut self, cx: &mut Context<'_>, limit: usize) -> Result<(), Status> {
        while self.ready.count() < 2 || self.ready.len() < limit {
            let Some(rest) = &mut self.rest else { break };
            match rest.as_mut().poll_next(cx) {
                Poll::Ready(Some(Ok(Frame::Data(data)))) => self.push(data),
                Poll::Ready(Some(Ok(Frame::Trailers(trailers)))) => {
                    self.trailers = trailers;
                    self.rest = None;
                }
                Poll::Ready(Some(Err(status))) => {
                    self.rest = None;
                    return Err(status);
                }
                Poll::Ready(None) => self.rest = None,
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    /// Reads the immediately available parts into memory.
    pub(crate) async fn gather(&mut self, limit: usize) -> Result<(), Status> {
        if self.rest.is_none() {
            return Ok(());
        }
        std::future::poll_fn(|cx| Poll::Ready(self.poll_gather(cx, limit))).await
    }

    /// Returns whether nothing is left: neither data in memory nor parts to wait for.
    pub(crate) const fn is_exhausted(&self) -> bool {
        self.is_complete() && self.ready.len() == 0
    }

    /// Removes up to `limit` bytes in memory from the body.
    pub(crate) fn take_ready_up_to(&mut self, limit: usize) -> Pieces {
        self.ready.take_up_to(limit)
    }

    /// Removes the data in memory from the body.
    pub(crate) fn take_ready(&mut self) -> Pieces {
        std::mem::take(&mut self.ready)
    }

    fn push(&mut self, data: Bytes) {
        self.ready.push(data);
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame, Status>>> {
        if let Some(data) = self.ready.pop() {
            return Poll::Ready(Some(Ok(Frame::Data(data))));
        }
        if let Some(rest) = &mut self.rest {
            let part = std::task::ready!(rest.as_mut().poll_next(cx));
            if !matches!(part, Some(Ok(Frame::Data(_)))) {
                self.rest = None;
            }
            return Poll::Ready(part);
        }
        if self.trailers.is_empty() {
            return Poll::Ready(None);
        }
        let trailers = std::mem::take(&mut self.trailers);
        Poll::Ready(Some(Ok(Frame::Trailers(trailers))))
    }
}

/// A failure without content.
struct Failure(Option<Status>);

impl Stream for Failure {
    type Item = Result<Frame, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Err))
    }
}

impl Stream for Body {
    type Item = Result<Frame, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_part(cx)
    }
}

impl From<Bytes> for Body {
    fn from(data: Bytes) -> Self {
        let mut body = Self::empty();
        body.push(data);
        body
    }
}

impl From<Vec<u8>> for Body {
    fn from(data: Vec<u8>) -> Self {
        Self::from(Bytes::from(data))
    }
}

impl From<Payload> for Body {
    fn from(payload: Payload) -> Self {
        let mut body = Self::empty();
        for slice in payload.slices() {
            body.push(slice.clone());
        }
        body
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("ready_len", &self.ready_len())
            .field("is_complete", &self.is_complete())
            .finish_non_exhaustive()
    }
}
