//! Requests and responses, as used by clients, servers and the layers around them.

use crate::body::Body;
use crate::byte_str::ByteStr;
use crate::metadata::Metadata;
use crate::trace_context::TraceContext;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The servers that earlier attempts of a call went to, so that a further attempt avoids them. All
/// copies of a request share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempts(Arc<Mutex<Vec<SocketAddr>>>);

impl Attempts {
    pub(crate) fn add(&self, server: SocketAddr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(server);
    }

    pub(crate) fn contains(&self, server: SocketAddr) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&server)
    }
}

/// A request: a method, options, and a body.
#[derive(Debug, Default)]
pub struct Request {
    method: ByteStr,
    signature: u32,
    metadata: Metadata,
    deadline: Option<Instant>,
    trace: Option<TraceContext>,
    idempotent: bool,
    peer: Option<SocketAddr>,
    attempts: Option<Attempts>,
    only_elsewhere: bool,
    body: Body,
}

impl Request {
    /// Creates a request of `method`, such as `shop.Orders/place`.
    pub fn new(method: impl Into<ByteStr>, body: impl Into<Body>) -> Self {
        Self { method: method.into(), body: body.into(), ..Self::default() }
    }

    /// Sets the signature, a number that identifies the types of arguments and results. The
    /// default, 0, disables the check.
    #[must_use]
    pub const fn with_signature(mut self, signature: u32) -> Self {
        self.signature = signature;
        self
    }

    /// Sets the metadata.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Metadata) -> Self {
        self.metadata = metadata;
        self
    }

    /// Sets the deadline of the caller. The server receives the time left. A call made by a handler
    /// ends no later than the call that it serves.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the deadline to `timeout` from now.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        self.with_deadline(Instant::now().checked_add(timeout))
    }

    /// Sets the trace that the call belongs to. The default is the trace of the call being served.
    #[must_use]
    pub const fn with_trace(mut self, trace: Option<TraceContext>) -> Self {
        self.trace = trace;
        self
    }

    /// Declares that executing the request twice is harmless, so that it may be retried and hedged.
    #[must_use]
    pub const fn with_idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Makes copies of the request avoid each other's servers.
    pub(crate) fn share_attempts(&mut self) {
        self.attempts.get_or_insert_default();
    }

    /// Returns the servers of earlier attempts.
    pub(crate) const fn attempts(&self) -> Option<&Attempts> {
        self.attempts.as_ref()
    }

    /// Sets whether the call must avoid servers of earlier attempts.
    pub(crate) const fn with_only_elsewhere(mut self, only_elsewhere: bool) -> Self {
        self.only_elsewhere = only_elsewhere;
        self
    }

    pub(crate) const fn is_only_elsewhere(&self) -> bool {
        self.only_elsewhere
    }

    pub(crate) const fn with_peer(mut self, peer: SocketAddr) -> Self {
        self.peer = Some(peer);
        self
    }

    /// Returns service and method, such as `shop.Orders/place`.
    #[must_use]
    pub const fn method(&self) -> &ByteStr {
        &self.method
    }

    /// Returns the number that identifies the types of arguments and results; 0 if the check is
    /// disabled.
    #[must_use]
    pub const fn signature(&self) -> u32 {
        self.signature
    }

    /// Returns the metadata.
    #[must_use]
    pub const fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns the metadata for modification.
    pub const fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }

    /// Returns the deadline of the caller; `None` if there is none.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns the trace that the call belongs to.
    #[must_use]
    pub const fn trace(&self) -> Option<TraceContext> {
        self.trace
    }

    /// Returns whether executing the request twice is harmless.
    #[must_use]
    pub const fn is_idempotent(&self) -> bool {
        self.idempotent
    }

    /// Returns the client's address, at a server.
    #[must_use]
    pub const fn peer_addr(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Returns the body.
    #[must_use]
    pub const fn body(&self) -> &Body {
        &self.body
    }

    /// Returns the body for reading or modification.
    pub const fn body_mut(&mut self) -> &mut Body {
        &mut self.body
    }

    /// Returns the body.
    #[must_use]
    pub fn into_body(self) -> Body {
        self.body
    }

    /// Returns a copy that shares the memory, if the body is complete. Layers that may send a
    /// request twice keep one.
    #[must_use]
    pub fn try_clone(&self) -> Option<Self> {
        Some(Self {
            method: self.method.clone(),
            metadata: self.metadata.clone(),
            body: self.body.try_clone()?,
            attempts: self.attempts.clone(),
            ..*self
        })
    }
}

/// A response: metadata and a body. A failed call has a [`Status`](crate::Status) instead.
#[derive(Debug, Default)]
pub struct Response {
    metadata: Metadata,
    body: Body,
    method_error: bool,
}

impl Response {
    /// Returns a response with this body.
    pub fn new(body: impl Into<Body>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }

    /// Sets the metadata, which is sent before the body.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Metadata) -> Self {
        self.metadata = metadata;
        self
    }

    /// Sets whether the body is the error type of the method rather than its result.
    #[must_use]
    pub const fn with_method_error(mut self, method_error: bool) -> Self {
        self.method_error = method_error;
        self
    }

    /// Returns the metadata.
    #[must_use]
    pub const fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns whether the body is the error type of the method rather than its result.
    #[must_use]
    pub const fn is_method_error(&self) -> bool {
        self.method_error
    }

    /// Returns the body.
    #[must_use]
    pub const fn body(&self) -> &Body {
        &self.body
    }

    /// Returns the metadata and the body.
    #[must_use]
    pub fn into_parts(self) -> (Metadata, Body) {
        (self.metadata, self.body)
    }

    /// Returns the body.
    #[must_use]
    pub fn into_body(self) -> Body {
        self.body
    }
}
