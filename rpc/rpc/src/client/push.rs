//! A streamed request: its parts are PUSHes, whose responses are the credit for further PUSHes.

use crate::body::{Body, Frame};
use crate::envelope::{ResponseHead, StreamCommand, StreamHead};
use crate::handler::BoxFuture;
use crate::limits::{LONGEST_PART, PART, WINDOW};
use crate::pieces::Pieces;
use apus::tokio::Endpoint;
use apus::{CallError, CallOptions};
use futures_core::Stream;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Sends the rest of a request's body, up to [`WINDOW`] parts at a time.
pub(super) struct Pusher {
    endpoint: Endpoint,
    to: SocketAddr,
    stream: u64,
    options: CallOptions,
    next: u32,
    /// Data that was read and not sent yet.
    unsent: Pieces,
    /// Whether the body has been read to its end.
    has_read_all: bool,
    outstanding: VecDeque<BoxFuture<bool>>,
    ended: bool,
}

impl Pusher {
    pub(super) fn new(
        endpoint: Endpoint,
        to: SocketAddr,
        stream: u64,
        deadline: Option<Instant>,
    ) -> Self {
        // A server that accepts no part for a while is no failure: the server or its crash ends the
        // call.
        let options = CallOptions::new();
        let options = match deadline {
            Some(deadline) => options.deadline(deadline),
            None => options.timeout(Duration::MAX),
        };
        let outstanding = VecDeque::new();
        Self {
            endpoint,
            to,
            stream,
            options,
            next: 0,
            unsent: Pieces::default(),
            has_read_all: false,
            outstanding,
            ended: false,
        }
    }

    /// Sends all of `body`. If a PUSH fails, the response contains the reason, so it is not
    /// reported here.
    pub(super) async fn run(mut self, mut body: Body) {
        std::future::poll_fn(|cx| self.poll(&mut body, cx)).await;
    }

    fn poll(&mut self, body: &mut Body, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            while let Some(oldest) = self.outstanding.front_mut() {
                match oldest.as_mut().poll(cx) {
                    Poll::Ready(true) => drop(self.outstanding.pop_front()),
                    Poll::Ready(false) => return Poll::Ready(()),
                    Poll::Pending => break,
                }
            }
            if self.ended && self.outstanding.is_empty() {
                return Poll::Ready(());
            }
            if self.ended || self.outstanding.len() >= WINDOW {
                return Poll::Pending;
            }
            let mut push = std::task::ready!(self.poll_push(body, cx));
            if let Poll::Ready(taken) = push.as_mut().poll(cx) {
                push = Box::pin(std::future::ready(taken));
            }
            self.outstanding.push_back(push);
        }
    }

    /// Waits for the next part of the body, and returns the call that sends it.
    fn poll_push(&mut self, body: &mut Body, cx: &mut Context<'_>) -> Poll<BoxFuture<bool>> {
        if self.unsent.len() == 0 && !self.has_read_all {
            match std::task::ready!(Pin::new(&mut *body).poll_next(cx)) {
                Some(Ok(Frame::Data(data))) => self.unsent.push(data),
                Some(Ok(Frame::Trailers(_))) | None => self.has_read_all = true,
                Some(Err(_)) => return Poll::Ready(self.cancel()),
            }
            let failed = body.poll_gather(cx, PART).is_err();
            let mut more = body.take_ready();
            self.unsent.extend(std::iter::from_fn(|| more.pop()));
            if failed {
                return Poll::Ready(self.cancel());
            }
            self.has_read_all |= body.is_complete();
        }
        let data = self.unsent.take_up_to(LONGEST_PART);
        self.ended = self.has_read_all && self.unsent.len() == 0;
        Poll::Ready(self.push(data, self.ended))
    }

    /// Ends the stream before its end.
    fn cancel(&mut self) -> BoxFuture<bool> {
        self.ended = true;
        self.send(StreamCommand::Cancel, Pieces::default())
    }

    fn push(&mut self, data: Pieces, end: bool) -> BoxFuture<bool> {
        let number = self.next;
        self.next = number.wrapping_add(1);
        self.send(StreamCommand::Push { number, end }, data)
    }

    /// Returns a call that yields `true` if the server accepted the part.
    fn send(&self, command: StreamCommand, data: Pieces) -> BoxFuture<bool> {
        let head = StreamHead { stream: self.stream, command };
        let payload = data.behind(head.encode().into());
        let (endpoint, to, options) = (self.endpoint.clone(), self.to, self.options);
        Box::pin(async move {
            let answer = endpoint.call_with(to, payload, options).await;
            if let Err(CallError::Rejected(_)) = answer {
                // The server would wait for the part.
                let head = StreamHead { stream: head.stream, command: StreamCommand::Cancel };
                let _ = endpoint.call_with(to, head.encode(), options).await;
            }
            let answer = answer.map(ResponseHead::parse);
            matches!(answer, Ok(Ok((head, _))) if head.status.is_none())
        })
    }
}
