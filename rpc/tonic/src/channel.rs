//! A channel for generated clients.

use crate::body::{FromHttp, ToHttp};
use crate::headers::{APPLICATION_GRPC, TRACEPARENT, append, to_metadata};
use crate::status::to_tonic;
use crate::timeout::{self, GRPC_TIMEOUT};
use apus_rpc::typed::Service as RpcService;
use apus_rpc::{Body, BoxFuture, Request, Response, Status, TraceContext};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Instant;
use tower_service::Service;

/// Sends the calls of generated clients: `GreeterClient::new(channel)`.
///
/// Wraps an [`apus_rpc::Channel`], or layers around one. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Channel<S = apus_rpc::Channel> {
    service: S,
}

impl Channel {
    /// Opens an endpoint for calls and returns a channel to the server at `to`. Sends no packets:
    /// there are no connections.
    ///
    /// # Errors
    ///
    /// [`BindError`](apus_rpc::BindError): the endpoint cannot be opened, or the caller is outside of a tokio
    /// runtime with IO and time enabled.
    pub async fn connect(to: SocketAddr) -> Result<Self, apus_rpc::BindError> {
        Ok(Self::new(apus_rpc::Channel::connect(to).await?))
    }
}

impl<S: RpcService> Channel<S> {
    /// Returns a channel that sends its calls through `service`.
    pub const fn new(service: S) -> Self {
        Self { service }
    }
}

impl<S, B> Service<http::Request<B>> for Channel<S>
where
    S: RpcService + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = http::Response<tonic::body::Body>;
    type Error = tonic::Status;
    type Future = BoxFuture<Result<Self::Response, tonic::Status>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), tonic::Status>> {
        self.service.poll_ready(cx).map_err(|status| to_tonic(&status))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let request = match to_rpc(request) {
            Ok(request) => request,
            Err(status) => return Box::pin(std::future::ready(Ok(to_tonic(&status).into_http()))),
        };
        let call = self.service.call(request);
        Box::pin(async move {
            Ok(match call.await {
                Ok(response) => to_http(response),
                // A response without a body, as sent by a gRPC server.
                Err(status) => to_tonic(&status).into_http(),
            })
        })
    }
}

/// Converts a request of HTTP to `apus-rpc`.
fn to_rpc<B>(request: http::Request<B>) -> Result<Request, Status>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let method = parts.uri.path().trim_start_matches('/').to_owned();
    let signature = signature(&method);
    let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let deadline = header(GRPC_TIMEOUT)
        .and_then(timeout::parse)
        .and_then(|timeout| Instant::now().checked_add(timeout));
    Ok(Request::new(method, Body::stream(FromHttp(Box::pin(body))))
        .with_signature(signature)
        .with_deadline(deadline)
        .with_trace(header(TRACEPARENT).and_then(TraceContext::from_traceparent))
        .with_metadata(to_metadata(&parts.headers)?))
}

/// Returns the number that the response must repeat: FNV-1a of the method, never 0.
fn signature(method: &str) -> u32 {
    let hash = method
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash.max(1)
}

/// Converts a response of `apus-rpc` to HTTP.
fn to_http(response: Response) -> http::Response<tonic::body::Body> {
    let (metadata, body) = response.into_parts();
    let mut response = http::Response::new(tonic::body::Body::new(ToHttp::response(body)));
    response.headers_mut().insert(CONTENT_TYPE, APPLICATION_GRPC);
    append(response.headers_mut(), &metadata);
    response
}
