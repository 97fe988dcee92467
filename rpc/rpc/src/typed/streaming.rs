//! A stream of typed parts: the last argument of a method, or its result.

use super::codec::{Codec, Message};
use super::framing::{Parts, frame};
use crate::body::{Body, Frame};
use crate::code::Code;
use crate::status::Status;
use futures_core::Stream;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

type Items<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// A stream of parts of a request or a response, with credit: a reader that pauses stops its
/// writer.
///
/// A method takes one as its last argument, returns one, or both. A failure ends the stream.
pub struct Streaming<T> {
    items: Items<T>,
}

/// Writes the parts of a [`Streaming`]. The stream ends when all senders are dropped.
#[derive(Debug)]
pub struct Sender<T> {
    items: mpsc::Sender<Result<T, Status>>,
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { items: self.items.clone() }
    }
}

impl<T> Sender<T> {
    /// Writes a part. Waits for credit.
    ///
    /// # Errors
    ///
    /// [`Code::Cancelled`]: the reader was dropped.
    pub async fn send(&self, item: T) -> Result<(), Status> {
        self.items.send(Ok(item)).await.map_err(|_| not_read())
    }

    /// Ends the stream with a failure.
    ///
    /// # Errors
    ///
    /// [`Code::Cancelled`]: the reader was dropped.
    pub async fn fail(self, status: Status) -> Result<(), Status> {
        self.items.send(Err(status)).await.map_err(|_| not_read())
    }

    /// Waits until the reader is dropped.
    pub async fn closed(&self) {
        self.items.closed().await;
    }
}

fn not_read() -> Status {
    Status::new(Code::Cancelled, "the reader of the stream wants no more")
}

impl<T: Send + 'static> Streaming<T> {
    /// Creates a stream of these parts, any of which may be a failure.
    pub fn new(items: impl Stream<Item = Result<T, Status>> + Send + 'static) -> Self {
        Self { items: Box::pin(items) }
    }

    /// Creates a stream of existing parts.
    pub fn from_items(items: impl IntoIterator<Item = T, IntoIter: Send + 'static>) -> Self {
        Self::new(FromIterator(items.into_iter()))
    }

    /// Creates a stream and its writer. Up to `ahead` parts, at least one, wait to be sent.
    #[must_use]
    pub fn channel(ahead: usize) -> (Sender<T>, Self) {
        let (items, receiver) = mpsc::channel(ahead.max(1));
        (Sender { items }, Self::new(FromChannel(receiver)))
    }

    /// Waits for the next part. `None` ends the stream.
    ///
    /// # Errors
    ///
    /// The status that ends the stream early.
    pub async fn next(&mut self) -> Option<Result<T, Status>> {
        std::future::poll_fn(|cx| self.items.as_mut().poll_next(cx)).await
    }
}

impl<T: Message> Streaming<T> {
    /// Returns the parts of a body.
    pub(super) fn of_parts<C: Codec>(parts: Parts) -> Self {
        Self::new(Decoded::<C, T> { parts, types: std::marker::PhantomData })
    }

    /// Returns the body of `first` followed by these parts.
    pub(super) fn into_body<C: Codec>(self, first: Option<bytes::Bytes>) -> Body {
        let encoded = Encoded::<C, T> { items: self.items, codec: std::marker::PhantomData };
        match first {
            Some(first) => Body::followed_by(first, encoded),
            None => Body::stream(encoded),
        }
    }
}

impl<T> Stream for Streaming<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.items.as_mut().poll_next(cx)
    }
}

impl<T> std::fmt::Debug for Streaming<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streaming").finish_non_exhaustive()
    }
}

struct FromIterator<I>(I);

impl<I: Iterator> Stream for FromIterator<I>
where
    Self: Unpin,
{
    type Item = Result<I::Item, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}

impl<I> Unpin for FromIterator<I> {}

struct FromChannel<T>(mpsc::Receiver<Result<T, Status>>);

impl<T> Stream for FromChannel<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}

/// Values of a body.
struct Decoded<C, T> {
    parts: Parts,
    types: std::marker::PhantomData<fn() -> (C, T)>,
}

impl<C: Codec, T: Message> Stream for Decoded<C, T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let part = std::task::ready!(self.parts.poll_part(cx));
        Poll::Ready(part.map(|part| {
            C::decode(&part?).map_err(|error| {
                let message = format!("a part of the stream is malformed: {error}");
                Status::new(Code::InvalidArgument, message)
            })
        }))
    }
}

/// A body of values.
struct Encoded<C, T> {
    items: Items<T>,
    codec: std::marker::PhantomData<fn() -> C>,
}

impl<C: Codec, T: Message> Stream for Encoded<C, T> {
    type Item = Result<Frame, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = std::task::ready!(self.items.as_mut().poll_next(cx));
        Poll::Ready(item.map(|item| {
            let data = frame::<C, T>(&item?).map_err(|error| {
                Status::new(Code::Internal, format!("a part of the stream cannot be sent: {error}"))
            });
            data.map(Frame::Data)
        }))
    }
}
