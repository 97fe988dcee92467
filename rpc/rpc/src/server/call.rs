//! One call at a server: its limits, its handler, and its response.
//!
//! A call whose handler never waits is answered where its request was received, without a task and
//! without a future around the handler's. A call that waits continues in a separate future
//! ([`begin`]).

use super::health::{HEALTH_METHOD, Health};
use super::incoming::Incoming;
use super::outgoing::{self, Source, panicked};
use super::response::Pending;
use super::state::{Running, ServerState};
use super::streams::Streams;
use crate::body::Body;
use crate::code::Code;
use crate::context::Context;
use crate::envelope::{CallHead, RequestEnvelope, ResponseHead};
use crate::handler::{BoxFuture, Handler};
use crate::limits::{LONGEST_PART, MAX_AHEAD, PART};
use crate::message::{Request, Response};
use crate::metadata::Metadata;
use crate::pieces::Pieces;
use crate::status::Status;
use bytes::Bytes;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Instant;
use tokio::sync::mpsc;

/// State shared by all calls of a server.
pub(super) struct ServerContext {
    pub(super) handlers: HashMap<String, Arc<dyn Handler>>,
    pub(super) state: Arc<ServerState>,
    pub(super) streams: Arc<Streams>,
}

/// The rest of a call.
type Rest = BoxFuture<()>;

/// Starts to serve one message of a client: runs its handler until it waits. Returns the rest, to
/// be polled by a task; `None` if the message is answered.
pub(super) fn begin(
    shared: &Arc<ServerContext>,
    mut request: apus::tokio::Request,
    cx: &mut task::Context<'_>,
) -> Option<Rest> {
    let peer = request.peer_addr();
    match RequestEnvelope::parse(request.take_payload()) {
        Ok(RequestEnvelope::Call(head, data)) => {
            let pending = Pending::new(request, head.signature, shared.state.clone());
            begin_call(shared, head, data, pending, peer, cx)
        }
        Ok(RequestEnvelope::Stream(head, data)) => {
            let streams = shared.streams.clone();
            let step = async move { streams.step(peer, head, data, request).await };
            unless_ready(Box::pin(step), cx)
        }
        Err(error) => {
            let status = Status::not_executed(Code::InvalidArgument, error.to_string());
            let pending = Pending::new(request, 0, shared.state.clone());
            unless_ready(Box::pin(pending.fail(status)), cx)
        }
    }
}

/// Polls a future once. Returns it if it is pending.
fn unless_ready(mut future: Rest, cx: &mut task::Context<'_>) -> Option<Rest> {
    future.as_mut().poll(cx).is_pending().then_some(future)
}

/// An admitted call without a response yet.
struct Admitted {
    shared: Arc<ServerContext>,
    pending: Pending,
    peer: SocketAddr,
    context: Context,
    running: Running,
}

fn begin_call(
    shared: &Arc<ServerContext>,
    head: CallHead,
    data: Bytes,
    pending: Pending,
    peer: SocketAddr,
    cx: &mut task::Context<'_>,
) -> Option<Rest> {
    if head.method.as_str() == HEALTH_METHOD {
        let health = Bytes::copy_from_slice(&[shared.state.health().number()]);
        let head = ResponseHead { head: Some(Metadata::new()), ..Default::default() };
        let answer = pending.answer(head, health.into());
        return unless_ready(
            Box::pin(async move {
                answer.await;
            }),
            cx,
        );
    }
    let deadline = head.timeout().and_then(|left| Instant::now().checked_add(left));
    let (handler, running) = match admit(shared, &head, deadline) {
        Ok(admitted) => admitted,
        Err(status) => return unless_ready(Box::pin(pending.fail(status)), cx),
    };
    let context = Context { deadline, trace: head.trace };
    let admitted = Admitted { shared: shared.clone(), pending, peer, context, running };
    let open = head.open;
    let mut request = Request::new(head.method, Body::empty())
        .with_signature(head.signature)
        .with_metadata(head.metadata)
        .with_deadline(deadline)
        .with_trace(head.trace)
        .with_idempotent(head.idempotent)
        .with_peer(peer);
    context.sync_scope(|| {
        if open {
            let served = admitted.serve_open(handler.clone(), request, data);
            return unless_ready(Box::pin(context.scope(served)), cx);
        }
        *request.body_mut() = Body::from(data);
        // A panic of `Handler::call` itself counts as a panic of the future.
        let Ok(mut handled) = catch_unwind(AssertUnwindSafe(|| handler.call(request))) else {
            return admitted.respond(Err(panicked()), cx);
        };
        match poll_no_panic(&mut handled, cx) {
            Poll::Ready(result) => admitted.respond(result, cx),
            Poll::Pending => Some(Box::pin(context.scope(admitted.finish(handled)))),
        }
    })
}

/// Decides whether a call is served, and by which handler, before its payload is read.
fn admit<'a>(
    shared: &'a ServerContext,
    head: &CallHead,
    deadline: Option<Instant>,
) -> Result<(&'a Arc<dyn Handler>, Running), Status> {
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

impl Admitted {
    /// Waits for a pending handler, up to the deadline, and answers. A client that does not wait
    /// any more ends the handler.
    async fn finish(self, mut handled: BoxFuture<Result<Response, Status>>) {
        let gone = self.pending.client_gone();
        let handled = std::future::poll_fn(|cx| poll_no_panic(&mut handled, cx));
        let result = async {
            match self.context.deadline {
                Some(deadline) => {
                    let timed = tokio::time::timeout_at(deadline.into(), handled).await;
                    timed.unwrap_or_else(|_| Err(outgoing::too_late()))
                }
                None => handled.await,
            }
        };
        let result = tokio::select! {
            biased;
            result = result => result,
            () = gone => return,
        };
        let mut ended = Some((self, result));
        let respond = std::future::poll_fn(|cx| {
            Poll::Ready(ended.take().and_then(|(call, result)| call.respond(result, cx)))
        });
        if let Some(rest) = respond.await {
            rest.await;
        }
    }

    /// Answers a call with the response, or with its start; the client pulls the rest. Returns the
    /// remaining work.
    fn respond(self, result: Result<Response, Status>, cx: &mut task::Context<'_>) -> Option<Rest> {
        match Answer::new(result, cx) {
            Answer::Complete(head, data) => {
                let Self { pending, running, .. } = self;
                let answer = pending.answer(head, data);
                let answered = async move {
                    answer.await;
                    drop(running);
                };
                unless_ready(Box::pin(answered), cx)
            }
            Answer::Beginning(head, body) => {
                let context = self.context;
                unless_ready(Box::pin(context.scope(self.respond_with_stream(head, body))), cx)
            }
        }
    }

    async fn respond_with_stream(self, mut head: ResponseHead, mut body: Body) {
        match self.shared.streams.open(self.peer, None) {
            Ok(opened) => {
                head.more = Some(opened.id);
                let client = self.pending.client_process();
                let begun = self.pending.answer(head, body.take_ready_up_to(LONGEST_PART)).await;
                if begun {
                    outgoing::run(opened, Source::Body(body), self.context.deadline, client).await;
                }
            }
            Err(status) => {
                self.pending.fail(status.with_execution(apus::Execution::Executed)).await;
            }
        }
    }

    /// Serves a call whose request is a stream that starts with `data`.
    async fn serve_open(self, handler: Arc<dyn Handler>, mut request: Request, data: Bytes) {
        let (sender, parts) = mpsc::channel(MAX_AHEAD as usize);
        let opened = match self.shared.streams.open(self.peer, Some(sender)) {
            Ok(opened) => opened,
            Err(status) => return self.pending.fail(status).await,
        };
        let head = ResponseHead { more: Some(opened.id), ..Default::default() };
        let client = self.pending.client_process();
        self.pending.answer(head, Pieces::default()).await;
        *request.body_mut() = Body::followed_by(data, Incoming::new(parts));
        // A panic of `Handler::call` itself counts as a panic of the future.
        let served: BoxFuture<_> = Box::pin(async move { handler.call(request).await });
        outgoing::run(opened, Source::Handler(served), self.context.deadline, client).await;
    }
}

/// The part of the response that the client gets at once.
enum Answer {
    /// The complete response.
    Complete(ResponseHead, Pieces),
    /// The start of a streamed response.
    Beginning(ResponseHead, Body),
}

impl Answer {
    /// Takes the immediately available part of a response.
    fn new(result: Result<Response, Status>, cx: &mut task::Context<'_>) -> Self {
        let response = match result {
            Ok(response) => response,
            Err(status) => return Self::failure(status),
        };
        let method_error = response.is_method_error();
        let (metadata, mut body) = response.into_parts();
        let mut head = ResponseHead { head: Some(metadata), method_error, ..Default::default() };
        if !body.is_complete() {
            let gathered = catch_unwind(AssertUnwindSafe(|| body.poll_gather(cx, PART)));
            if let Err(status) = gathered.unwrap_or_else(|_| Err(panicked())) {
                if body.ready_len() == 0 {
                    head.status = Some(status);
                    return Self::Complete(head, Pieces::default());
                }
                // Content precedes the failure, so the failure is the stream's next part.
                body = Body::failing(body, status);
            }
        }
        if !body.is_complete() {
            return Self::Beginning(head, body);
        }
        let data = body.take_ready();
        head.trailers = body.into_trailers();
        Self::Complete(head, data)
    }

    fn failure(status: Status) -> Self {
        let head = Some(Metadata::new());
        let head = ResponseHead { status: Some(status), head, ..Default::default() };
        Self::Complete(head, Pieces::default())
    }
}

/// Polls a handler; a panic in it fails the call.
fn poll_no_panic(
    handled: &mut BoxFuture<Result<Response, Status>>,
    cx: &mut task::Context<'_>,
) -> Poll<Result<Response, Status>> {
    let polled = catch_unwind(AssertUnwindSafe(|| handled.as_mut().poll(cx)));
    polled.unwrap_or_else(|_| Poll::Ready(Err(panicked())))
}
