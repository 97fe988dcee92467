//! A streamed response: its parts are the responses to PULLs.

use super::exchange::{malformed, options};
use crate::body::Frame;
use crate::code::Code;
use crate::envelope::{ResponseHead, StreamCommand, StreamHead};
use crate::handler::BoxFuture;
use crate::limits::{CANCEL_TIMEOUT, WINDOW};
use crate::metadata::Metadata;
use crate::status::Status;
use apus::tokio::Endpoint;
use apus::{CallError, CallOptions, Execution};
use bytes::Bytes;
use futures_core::Stream;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::task::JoinHandle;

/// The parts of a response, in order. Keeps [`WINDOW`] PULLs outstanding, and cancels the stream if
/// it is dropped before the end.
pub(super) struct ResponseStream {
    endpoint: Endpoint,
    to: SocketAddr,
    id: u64,
    deadline: Option<Instant>,
    /// Number of the oldest outstanding PULL.
    oldest: u32,
    /// Outstanding PULLs, by number.
    pulls: VecDeque<BoxFuture<Result<Bytes, CallError>>>,
    /// Parts received and not taken yet.
    arrived: VecDeque<Frame>,
    head: Option<Metadata>,
    ended: bool,
    /// Sends the request's parts; ends with this stream.
    pusher: Option<JoinHandle<()>>,
}

impl ResponseStream {
    pub(super) const fn new(
        endpoint: Endpoint,
        to: SocketAddr,
        id: u64,
        deadline: Option<Instant>,
    ) -> Self {
        Self {
            endpoint,
            to,
            id,
            deadline,
            oldest: 0,
            pulls: VecDeque::new(),
            arrived: VecDeque::new(),
            head: None,
            ended: false,
            pusher: None,
        }
    }

    pub(super) const fn id(&self) -> u64 {
        self.id
    }

    /// Aborts the task when the stream ends.
    pub(super) fn keep(&mut self, pusher: JoinHandle<()>) {
        self.pusher = Some(pusher);
    }

    /// Adds the part that arrived before the responses to PULLs.
    pub(super) fn add(&mut self, data: Bytes) {
        if !data.is_empty() {
            self.arrived.push_back(Frame::Data(data));
        }
    }

    /// Waits for the start of the response.
    pub(super) async fn head(&mut self) -> Result<Metadata, Status> {
        std::future::poll_fn(|cx| {
            loop {
                if let Some(head) = self.head.take() {
                    return Poll::Ready(Ok(head));
                }
                if self.ended {
                    let message = "the stream ended before the response began";
                    return Poll::Ready(Err(Status::new(Code::Internal, message)));
                }
                std::task::ready!(self.poll_pull(cx))?;
            }
        })
        .await
    }

    /// Takes the response to the oldest PULL.
    fn poll_pull(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        while self.pulls.len() < WINDOW {
            let number = self.oldest.wrapping_add(self.pulls.len() as u32);
            let mut pull = self.pull(number);
            // Polling sends it. Its result is taken in order, unless it failed at once.
            if let Poll::Ready(result) = pull.as_mut().poll(cx) {
                pull = Box::pin(std::future::ready(result));
            }
            self.pulls.push_back(pull);
        }
        let Some(oldest) = self.pulls.front_mut() else { return Poll::Pending };
        let result = std::task::ready!(oldest.as_mut().poll(cx));
        self.pulls.pop_front();
        let number = self.oldest;
        self.oldest = number.wrapping_add(1);
        let taken = result.map_err(failed).and_then(|message| self.take(number, message));
        if taken.is_err() || self.ended {
            self.end();
        }
        Poll::Ready(taken)
    }

    fn pull(&self, number: u32) -> BoxFuture<Result<Bytes, CallError>> {
        let head = StreamHead { stream: self.id, command: StreamCommand::Pull { number } };
        let (endpoint, to, deadline) = (self.endpoint.clone(), self.to, self.deadline);
        Box::pin(async move { endpoint.call_with(to, head.encode(), options(deadline)).await })
    }

    fn take(&mut self, number: u32, message: Bytes) -> Result<(), Status> {
        let (answer, data) = ResponseHead::parse(message).map_err(malformed)?;
        let other = answer.more.is_some_and(|stream| stream != self.id);
        if other || answer.echo != number {
            let text = "the server answered with a part of another stream";
            return Err(Status::new(Code::Internal, text).with_execution(Execution::Unknown));
        }
        if let Some(status) = answer.status {
            return Err(status);
        }
        self.head = self.head.take().or(answer.head);
        self.add(data);
        if answer.more.is_none() {
            self.ended = true;
            if !answer.trailers.is_empty() {
                self.arrived.push_back(Frame::Trailers(answer.trailers));
            }
        }
        Ok(())
    }

    fn end(&mut self) {
        self.ended = true;
        self.pulls.clear();
        if let Some(pusher) = self.pusher.take() {
            pusher.abort();
        }
    }
}

/// Returns the status of a call one of whose PULLs failed. A PULL that was not executed says nothing
/// about the call, which the server has accepted.
fn failed(error: CallError) -> Status {
    let status = Status::from(error);
    match status.execution() {
        Execution::NotExecuted => status.with_execution(Execution::Unknown),
        _ => status,
    }
}

impl Stream for ResponseStream {
    type Item = Result<Frame, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(frame) = self.arrived.pop_front() {
                return Poll::Ready(Some(Ok(frame)));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            if let Err(status) = std::task::ready!(self.poll_pull(cx)) {
                return Poll::Ready(Some(Err(status)));
            }
        }
    }
}

impl Drop for ResponseStream {
    fn drop(&mut self) {
        let cancel = !self.ended;
        self.end();
        // Without a runtime the server notices the missing PULLs.
        if let (true, Ok(runtime)) = (cancel, tokio::runtime::Handle::try_current()) {
            let head = StreamHead { stream: self.id, command: StreamCommand::Cancel };
            let (endpoint, to) = (self.endpoint.clone(), self.to);
            runtime.spawn(async move {
                let options = CallOptions::new().timeout(CANCEL_TIMEOUT);
                // If the server has ended, there is nothing to cancel.
                let _ = endpoint.call_with(to, head.encode(), options).await;
            });
        }
    }
}
