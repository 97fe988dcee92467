//! One call at a server: its limits, its handler, and its answer.

use super::health::{HEALTH_METHOD, Health};
use super::incoming::Incoming;
use super::outgoing::{self, Source, panicked};
use super::response::Pending;
use super::state::State;
use super::streams::Streams;
use crate::body::Body;
use crate::code::Code;
use crate::context::Context;
use crate::envelope::{CallHead, RequestEnvelope, ResponseHead};
use crate::handler::{BoxFuture, Handler};
use crate::limits::{MAX_AHEAD, PART};
use crate::message::{Request, Response};
use crate::metadata::Metadata;
use crate::pieces::Pieces;
use crate::status::Status;
use bytes::Bytes;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;
use tokio::sync::mpsc;

/// What all calls of a server share.
pub(super) struct Shared {
    pub(super) handlers: HashMap<String, Arc<dyn Handler>>,
    pub(super) state: State,
    pub(super) streams: Arc<Streams>,
}

/// Serves one message of a client.
pub(super) async fn serve(
    shared: Arc<Shared>,
    mut request: apus::tokio::Request,
    received: Instant,
) {
    let peer = request.peer_addr();
    match RequestEnvelope::parse(request.take_payload()) {
        Ok(RequestEnvelope::Call(head, data)) => {
            let pending = Pending::new(request, head.signature);
            call(shared, head, data, pending, peer, received).await;
        }
        Ok(RequestEnvelope::Stream(head, data)) => {
            shared.streams.step(peer, head, data, request).await;
        }
        Err(error) => {
            let status = Status::not_executed(Code::InvalidArgument, error.to_string());
            Pending::new(request, 0).fail(status).await;
        }
    }
}

async fn call(
    shared: Arc<Shared>,
    head: CallHead,
    data: Bytes,
    pending: Pending,
    peer: std::net::SocketAddr,
    received: Instant,
) {
    if head.method.as_str() == HEALTH_METHOD {
        let health = Bytes::copy_from_slice(&[shared.state.health().number()]);
        let head = Some(Metadata::new());
        return pending.answer(ResponseHead { head, ..Default::default() }, health.into()).await;
    }
    let deadline = head.timeout().and_then(|left| received.checked_add(left));
    let admitted = admit(&shared, &head, deadline);
    let (handler, running) = match admitted {
        Ok(admitted) => admitted,
        Err(status) => return pending.fail(status).await,
    };
    let context = Context { deadline, trace: head.trace };
    let open = head.open;
    let mut request = Request::new(head.method, Body::empty())
        .with_signature(head.signature)
        .with_metadata(head.metadata)
        .with_deadline(deadline)
        .with_trace(head.trace)
        .with_idempotent(head.idempotent)
        .with_peer(peer);
    let served = async {
        if open {
            let (sender, parts) = mpsc::channel(MAX_AHEAD as usize);
            let opened = match shared.streams.open(peer, Some(sender)) {
                Ok(opened) => opened,
                Err(status) => return pending.fail(status).await,
            };
            let more = Some(opened.id);
            pending.answer(ResponseHead { more, ..Default::default() }, Pieces::default()).await;
            *request.body_mut() = Body::followed_by(data, Incoming::new(parts));
            // A panic of `Handler::call` itself is one of the future's.
            let handler = handler.clone();
            let served: BoxFuture<_> = Box::pin(async move { handler.call(request).await });
            return outgoing::run(opened, Source::Handler(served), deadline).await;
        }
        *request.body_mut() = Body::from(data);
        let handled = no_panic(async { handler.call(request).await });
        let result = match deadline {
            Some(deadline) => {
                let timed = tokio::time::timeout_at(deadline.into(), handled).await;
                timed.unwrap_or_else(|_| Err(outgoing::too_late()))
            }
            None => handled.await,
        };
        respond(&shared, peer, pending, result, deadline).await;
    };
    context.scope(served).await;
    drop(running);
}

/// Decides whether a call is served, and by which handler. Nothing of its payload was read.
fn admit<'a>(
    shared: &'a Shared,
    head: &CallHead,
    deadline: Option<Instant>,
) -> Result<(&'a Arc<dyn Handler>, super::state::Running<'a>), Status> {
    if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
        let message = "the deadline passed before the server read the request";
        return Err(Status::not_executed(Code::DeadlineExceeded, message));
    }
    match shared.state.health() {
        Health::Ready => {}
        Health::NotReady => {
            shared.state.note_refusal();
            return Err(Status::not_executed(Code::Unavailable, "the server is not ready"));
        }
        Health::Draining => {
            shared.state.note_refusal();
            return Err(Status::not_executed(Code::Unavailable, "the server is draining"));
        }
    }
    let (service, _) = head.method.rsplit_once('/').unwrap_or_default();
    let Some(handler) = shared.handlers.get(service) else {
        let message = format!("the server has no service {service:?}");
        return Err(Status::not_executed(Code::Unimplemented, message));
    };
    let Some(running) = shared.state.begin() else {
        let message = "the server runs as many calls as it may";
        return Err(Status::not_executed(Code::ResourceExhausted, message));
    };
    Ok((handler, running))
}

/// Answers a call with the response, or with its beginning, whose rest the client pulls.
async fn respond(
    shared: &Arc<Shared>,
    peer: std::net::SocketAddr,
    pending: Pending,
    result: Result<Response, Status>,
    deadline: Option<Instant>,
) {
    let response = match result {
        Ok(response) => response,
        Err(status) => return pending.fail(status).await,
    };
    let method_error = response.is_method_error();
    let (metadata, mut body) = response.into_parts();
    let gathered = no_panic(body.gather(PART)).await;
    let mut head = ResponseHead { head: Some(metadata), method_error, ..Default::default() };
    if let Err(status) = gathered {
        if body.ready_len() == 0 {
            head.status = Some(status);
            return pending.answer(head, Pieces::default()).await;
        }
        // Some content came before the failure: the failure is the stream's next part.
        body = Body::failing(body, status);
    }
    let data = body.take_ready();
    if body.is_complete() {
        head.trailers = body.trailers().clone();
        return pending.answer(head, data).await;
    }
    match shared.streams.open(peer, None) {
        Ok(opened) => {
            head.more = Some(opened.id);
            pending.answer(head, data).await;
            outgoing::run(opened, Source::Body(body), deadline).await;
        }
        Err(status) => pending.fail(status.with_execution(apus::Execution::Executed)).await,
    }
}

/// Runs a future; a panic in it is a failure of the call.
async fn no_panic<T>(future: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| Poll::Ready(Err(panicked())))
    })
    .await
}
