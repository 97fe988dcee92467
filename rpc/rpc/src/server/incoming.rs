//! The parts of a request that arrive by PUSH, in order.

use super::response::Pending;
use crate::body::Frame;
use crate::code::Code;
use crate::handler::BoxFuture;
use crate::status::Status;
use bytes::Bytes;
use futures_core::Stream;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// A part of a request. Its response is the client's credit, sent when the handler takes the part.
pub(super) struct RequestPart {
    pub(super) number: u32,
    pub(super) end: bool,
    pub(super) data: Bytes,
    pub(super) pending: Pending,
}

/// The rest of a request's body.
pub(super) struct Incoming {
    parts: mpsc::Receiver<RequestPart>,
    /// Parts that arrived out of order; bounded by the window that the table enforces.
    early: BTreeMap<u32, RequestPart>,
    next: u32,
    ended: bool,
    answer: Option<BoxFuture<()>>,
}

impl Incoming {
    pub(super) const fn new(parts: mpsc::Receiver<RequestPart>) -> Self {
        Self { parts, early: BTreeMap::new(), next: 0, ended: false, answer: None }
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<RequestPart>> {
        loop {
            if let Some(part) = self.early.remove(&self.next) {
                self.next = self.next.wrapping_add(1);
                return Poll::Ready(Some(part));
            }
            let Some(part) = std::task::ready!(self.parts.poll_recv(cx)) else {
                return Poll::Ready(None);
            };
            // A second part with the same number replaces the first one, whose PUSH fails.
            self.early.insert(part.number, part);
        }
    }
}

impl Stream for Incoming {
    type Item = Result<Frame, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(answer) = &mut self.answer {
            if answer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.answer = None;
        }
        if self.ended {
            return Poll::Ready(None);
        }
        let Some(part) = std::task::ready!(self.poll_part(cx)) else {
            self.ended = true;
            let message = "the client ended the stream before the end of its request";
            return Poll::Ready(Some(Err(Status::new(Code::Cancelled, message))));
        };
        self.ended = part.end;
        let mut answer: BoxFuture<()> = Box::pin(part.pending.accept());
        if answer.as_mut().poll(cx).is_pending() {
            self.answer = Some(answer);
        }
        if part.data.is_empty() && part.end {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(Ok(Frame::Data(part.data))))
    }
}
