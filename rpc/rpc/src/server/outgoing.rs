//! A streamed response: its parts answer the client's PULLs, in order.

use super::response::Pending;
use super::streams::{Opened, Pull};
use crate::body::Body;
use crate::code::Code;
use crate::envelope::ResponseHead;
use crate::handler::BoxFuture;
use crate::limits::{FIRST_PULL, KEEP_ALIVE, LONGEST_PART, MAX_AHEAD, PART, STREAM_IDLE};
use crate::message::Response;
use crate::metadata::Metadata;
use crate::pieces::Pieces;
use crate::status::Status;
use apus::ClientWatch;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::time::timeout;

/// The source of a response's parts.
pub(super) enum Source {
    /// The handler has not returned.
    Handler(BoxFuture<Result<Response, Status>>),
    /// The body of the response.
    Body(Body),
}

/// A part of a response.
struct ResponsePart {
    head: Option<Metadata>,
    data: Pieces,
    /// The last part, with the trailers or the status of a failure.
    end: Option<Result<Metadata, Status>>,
}

/// PULLs, in the order of their numbers.
struct Pulls {
    opened: Opened,
    early: BTreeMap<u32, Pending>,
    next: u32,
}

/// Answers PULLs until the response ends, the client cancels or has gone, the deadline passes, or
/// PULLs stop arriving. `client` is the end of the client's process, if that is known.
pub(super) async fn run(
    opened: Opened,
    mut source: Source,
    deadline: Option<Instant>,
    client: Option<ClientWatch>,
) {
    let cancel = opened.cancel.clone();
    let mut pulls = Pulls { opened, early: BTreeMap::new(), next: 0 };
    let answered = async {
        let mut idle = FIRST_PULL;
        while let Ok(Some(pending)) = timeout(idle, pulls.next()).await {
            idle = STREAM_IDLE;
            let stream = pulls.opened.id;
            let part = tokio::select! {
                biased;
                part = timeout(KEEP_ALIVE, next_part(&mut source)) => part,
                () = pending.client_gone() => break,
            };
            let part = part.unwrap_or_else(|_| ResponsePart::empty());
            let ended = part.end.is_some();
            let mut head = ResponseHead { head: part.head, ..ResponseHead::default() };
            match part.end {
                None => head.more = Some(stream),
                Some(Ok(trailers)) => head.trailers = trailers,
                Some(Err(status)) => head.status = Some(status),
            }
            // A part that is too long ends the stream with a failure.
            if !pending.answer(head, part.data).await || ended {
                break;
            }
        }
    };
    let expired = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
            None => std::future::pending().await,
        }
    };
    let gone = async {
        match client {
            Some(client) => client.await,
            None => std::future::pending().await,
        }
    };
    let end = tokio::select! {
        () = answered => None,
        () = cancel.notified() => None,
        () = gone => None,
        () = expired => Some(too_late()),
    };
    pulls.finish(end).await;
}

impl Pulls {
    /// Waits for the next PULL. Returns `None` if the stream has no sender any more.
    async fn next(&mut self) -> Option<Pending> {
        loop {
            if let Some(pending) = self.early.remove(&self.next) {
                self.next = self.next.wrapping_add(1);
                return Some(pending);
            }
            let Pull { number, pending } = self.opened.pulls.recv().await?;
            if number.wrapping_sub(self.next) >= MAX_AHEAD || self.early.contains_key(&number) {
                let message = "the PULL's number is out of the window, or was used";
                pending.fail(Status::new(Code::InvalidArgument, message)).await;
            } else {
                self.early.insert(number, pending);
            }
        }
    }

    /// Answers the PULLs after the end, with the failure if there is one.
    async fn finish(mut self, end: Option<Status>) {
        self.opened.pulls.close();
        while let Ok(pull) = self.opened.pulls.try_recv() {
            self.early.insert(pull.number, pull.pending);
        }
        for (_, pending) in self.early {
            match &end {
                Some(status) => pending.fail(status.clone()).await,
                None => pending.accept().await,
            }
        }
    }
}

/// Waits for a part, and adds the parts that are available with it.
async fn next_part(source: &mut Source) -> ResponsePart {
    let mut first = None;
    std::future::poll_fn(move |cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| poll_source(source, &mut first, cx)));
        polled.unwrap_or_else(|_| {
            Poll::Ready(ResponsePart { end: Some(Err(panicked())), ..ResponsePart::empty() })
        })
    })
    .await
}

/// The status of a call whose deadline passed while its handler ran.
pub(super) fn too_late() -> Status {
    let message = "the deadline passed while the server executed the request";
    Status::new(Code::DeadlineExceeded, message)
}

/// The status of a call whose handler panicked.
pub(super) fn panicked() -> Status {
    Status::new(Code::Internal, "the handler panicked")
}

impl ResponsePart {
    fn empty() -> Self {
        Self { head: None, data: Pieces::default(), end: None }
    }
}

fn poll_source(
    source: &mut Source,
    head: &mut Option<Metadata>,
    cx: &mut Context<'_>,
) -> Poll<ResponsePart> {
    if let Source::Handler(handler) = source {
        let response = std::task::ready!(handler.as_mut().poll(cx));
        let (metadata, body) = match response {
            Ok(response) => response.into_parts(),
            Err(status) => {
                return Poll::Ready(ResponsePart {
                    end: Some(Err(status)),
                    ..ResponsePart::empty()
                });
            }
        };
        *head = Some(metadata);
        *source = Source::Body(body);
    }
    let Source::Body(body) = source else { return Poll::Pending };
    let begins = head.is_some();
    let mut part = ResponsePart { head: head.take(), ..ResponsePart::empty() };
    if let Err(status) = body.poll_gather(cx, PART) {
        part.end = Some(Err(status));
        part.data = body.take_ready();
        return Poll::Ready(part);
    }
    part.data = body.take_ready_up_to(LONGEST_PART);
    if body.is_exhausted() {
        part.end = Some(Ok(body.trailers().clone()));
    }
    if part.data.len() == 0 && part.end.is_none() && !begins {
        return Poll::Pending;
    }
    Poll::Ready(part)
}
