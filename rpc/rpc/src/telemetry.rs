//! OpenTelemetry spans: one per call at the client and one at the server, in one trace.
//!
//! The envelope carries the trace in the W3C's format. [`Client`] wraps a sender of calls: below
//! retries and hedging for a span per attempt, around them for a span per call. [`server`] wraps a
//! handler. Both use the global tracer set by the application. The server's span is the parent of
//! the calls that the handler makes.
//!
//! Spans have the attributes of OpenTelemetry's conventions for RPC, `rpc.system`, `rpc.service`,
//! `rpc.method`, `rpc.response.status_code` and `error.type`; spans of failed calls also have
//! `apus.execution`.

use crate::code::Code;
use crate::context::Context as CallContext;
use crate::handler::{BoxFuture, Handler};
use crate::message::{Request, Response};
use crate::status::Status;
use crate::trace_context::TraceContext;
use opentelemetry::trace::{
    FutureExt, SpanContext, SpanId, SpanKind, Status as SpanStatus, TraceContextExt, TraceFlags,
    TraceId, TraceState, Tracer,
};
use opentelemetry::{Context, KeyValue, global};
use std::task::Poll;
use tower_service::Service;

/// Name of the instrumentation scope.
const SCOPE: &str = "apus-rpc";

/// A service that records a span for each call.
#[derive(Clone, Debug)]
pub struct Client<S> {
    service: S,
}

impl<S> Client<S> {
    /// Creates a service that records a span for each call of `service`.
    pub const fn new(service: S) -> Self {
        Self { service }
    }
}

impl<S> Service<Request> for Client<S>
where
    S: Service<Request, Response = Response, Error = Status, Future: Send + 'static>,
{
    type Response = Response;
    type Error = Status;
    type Future = BoxFuture<Result<Response, Status>>;

    fn poll_ready(&mut self, cx: &mut std::task::Context<'_>) -> Poll<Result<(), Status>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let current = Context::current();
        let inherited = request.trace().or(CallContext::current().trace);
        let parent = match inherited {
            Some(trace) if !current.has_active_span() => with_remote(&current, trace),
            _ => current,
        };
        let span = begin(SpanKind::Client, &request, &parent);
        let request = request.with_trace(trace_of(&span));
        let call = self.service.call(request).with_context(span.clone());
        Box::pin(async move {
            let result = call.await;
            end(&span, &result);
            result
        })
    }
}

/// Returns a handler that records a span for each call of `handler`, a child of the client's span.
pub fn server(handler: impl Handler) -> impl Handler {
    Traced(handler)
}

struct Traced<H>(H);

impl<H: Handler> Handler for Traced<H> {
    fn service(&self) -> &str {
        self.0.service()
    }

    fn call(&self, request: Request) -> BoxFuture<Result<Response, Status>> {
        let root = Context::new();
        let parent =
            request.trace().map_or_else(|| root.clone(), |trace| with_remote(&root, trace));
        let span = begin(SpanKind::Server, &request, &parent);
        let trace = trace_of(&span);
        let context = CallContext { deadline: request.deadline(), trace };
        let call = self.0.call(request.with_trace(trace)).with_context(span.clone());
        Box::pin(async move {
            let result = context.scope(call).await;
            end(&span, &result);
            result
        })
    }
}

/// Returns a context with the span of another process.
fn with_remote(context: &Context, trace: TraceContext) -> Context {
    let flags = if trace.is_sampled() { TraceFlags::SAMPLED } else { TraceFlags::default() };
    let (trace_id, span_id) =
        (TraceId::from_bytes(trace.trace_id()), SpanId::from_bytes(trace.span_id()));
    let remote = SpanContext::new(trace_id, span_id, flags, true, TraceState::default());
    context.with_remote_span_context(remote)
}

/// Returns the propagated part of a span; `None` if no tracer is set.
fn trace_of(context: &Context) -> Option<TraceContext> {
    let span = context.span();
    let span = span.span_context();
    span.is_valid().then(|| {
        TraceContext::new(span.trace_id().to_bytes(), span.span_id().to_bytes(), span.is_sampled())
    })
}

fn begin(kind: SpanKind, request: &Request, parent: &Context) -> Context {
    let path = request.method().as_str().to_owned();
    let (service, method) = path.rsplit_once('/').unwrap_or(("", &path));
    let attributes = [
        KeyValue::new("rpc.system", "apus"),
        KeyValue::new("rpc.service", service.to_owned()),
        KeyValue::new("rpc.method", method.to_owned()),
    ];
    let tracer = global::tracer(SCOPE);
    let span = tracer.span_builder(path).with_kind(kind).with_attributes(attributes);
    parent.with_span(span.start_with_context(&tracer, parent))
}

/// Ends a span. The span of a streamed response ends at the start of the stream.
fn end(context: &Context, result: &Result<Response, Status>) {
    let span = context.span();
    let code = result.as_ref().map_or_else(Status::code, |_| Code::Ok);
    span.set_attribute(KeyValue::new("rpc.response.status_code", code.name()));
    if let Err(status) = result {
        span.set_attribute(KeyValue::new("error.type", code.name()));
        let execution = format!("{:?}", status.execution());
        span.set_attribute(KeyValue::new("apus.execution", execution));
        span.set_status(SpanStatus::error(status.message().to_owned()));
    }
    span.end();
}
