//! A handler for a generated server.

use crate::body::{FromHttp, ReadToEnd, ToHttp};
use crate::headers::{APPLICATION_GRPC, TRACEPARENT, append, to_metadata};
use crate::status::{from_tonic, is_of_decoder};
use crate::timeout::{self, GRPC_TIMEOUT};
use apus_rpc::{Body, BoxFuture, Code, Execution, Handler, Request, Response, Status};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, TE};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Instant;
use tonic::server::NamedService;
use tower_service::Service;

/// The client's address, in the extensions of a request.
///
/// ```
/// fn peer(request: &tonic::Request<()>) -> Option<std::net::SocketAddr> {
///     request.extensions().get::<apus_tonic::PeerAddr>().map(|peer| peer.0)
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddr(pub SocketAddr);

/// Returns a handler for a generated server, for [`apus_rpc::Server::add_service`].
pub fn handler<S, B>(service: S) -> impl Handler
where
    S: Service<
            http::Request<tonic::body::Body>,
            Response = http::Response<B>,
            Error = Infallible,
            Future: Send,
        > + NamedService
        + Clone
        + Send
        + Sync
        + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    Grpc(service)
}

struct Grpc<S>(S);

impl<S, B> Handler for Grpc<S>
where
    S: Service<
            http::Request<tonic::body::Body>,
            Response = http::Response<B>,
            Error = Infallible,
            Future: Send,
        > + NamedService
        + Clone
        + Send
        + Sync
        + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn service(&self) -> &str {
        S::NAME
    }

    fn call(&self, request: Request) -> BoxFuture<Result<Response, Status>> {
        let mut service = self.0.clone();
        Box::pin(async move {
            let read = ReadToEnd::default();
            let request = to_http(request, read.clone())?;
            let Ok(()) = std::future::poll_fn(|cx| service.poll_ready(cx)).await;
            let Ok(response) = service.call(request).await;
            to_rpc(response, &read)
        })
    }
}

/// Converts a request of `apus-rpc` to HTTP.
fn to_http(
    mut request: Request,
    read: ReadToEnd,
) -> Result<http::Request<tonic::body::Body>, Status> {
    let body = std::mem::take(request.body_mut());
    let uri = http::Uri::try_from(format!("/{}", request.method())).map_err(|error| {
        Status::not_executed(Code::Unimplemented, format!("no method of gRPC: {error}"))
    })?;
    let mut http = http::Request::new(tonic::body::Body::new(ToHttp::request(body, read)));
    *http.method_mut() = http::Method::POST;
    *http.version_mut() = http::Version::HTTP_2;
    *http.uri_mut() = uri;
    let headers = http.headers_mut();
    headers.insert(CONTENT_TYPE, APPLICATION_GRPC);
    headers.insert(TE, HeaderValue::from_static("trailers"));
    let mut insert = |name, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    };
    if let Some(deadline) = request.deadline() {
        let left = deadline.saturating_duration_since(Instant::now());
        insert(GRPC_TIMEOUT, timeout::format(left));
    }
    if let Some(trace) = request.trace() {
        insert(TRACEPARENT, trace.to_traceparent());
    }
    append(headers, request.metadata());
    if let Some(peer) = request.peer_addr() {
        http.extensions_mut().insert(PeerAddr(peer));
    }
    Ok(http)
}

/// Converts a response of HTTP to `apus-rpc`; `read`: whether the request was read to its end.
fn to_rpc<B>(response: http::Response<B>, read: &ReadToEnd) -> Result<Response, Status>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (parts, body) = response.into_parts();
    if let Some(status) = tonic::Status::from_header_map(&parts.headers)
        && status.code() != tonic::Code::Ok
    {
        // The decoder refused the request, or the service does not have the method.
        let refused = is_of_decoder(&status) || status.code() == tonic::Code::Unimplemented;
        let before = refused && !read.get();
        let execution = if before { Execution::NotExecuted } else { Execution::Executed };
        return Err(from_tonic(&status).with_execution(execution));
    }
    // The call was executed, even if the headers are invalid.
    let metadata =
        to_metadata(&parts.headers).map_err(|status| status.with_execution(Execution::Executed))?;
    Ok(Response::new(Body::stream(FromHttp(Box::pin(body)))).with_metadata(metadata))
}
