//! Bodies of HTTP and of `apus-rpc`: both are frames of data followed by trailers.

use crate::headers::{append, to_metadata};
use crate::status::{from_tonic, to_tonic};
use apus_rpc::{Code, Execution, Frame, Status};
use bytes::Bytes;
use futures_core::Stream;
use http::HeaderMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// A body of HTTP as frames of `apus-rpc`. A status in the trailers ends it, unless it is OK.
pub(crate) struct FromHttp<B>(pub(crate) Pin<Box<B>>);

/// Whether the body of a request was read to its end. A generated server reads the whole body of a
/// request with one message before it calls the method.
#[derive(Clone, Default)]
pub(crate) struct ReadToEnd(Arc<AtomicBool>);

impl ReadToEnd {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<B> Stream for FromHttp<B>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Item = Result<Frame, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let frame = match std::task::ready!(self.0.as_mut().poll_frame(cx)) {
            None => return Poll::Ready(None),
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                let status = tonic::Status::from_error(error.into());
                return Poll::Ready(Some(Err(from_tonic(&status))));
            }
        };
        Poll::Ready(Some(match frame.into_data() {
            Ok(data) => Ok(Frame::Data(data)),
            Err(frame) => match frame.into_trailers() {
                Ok(trailers) => end(&trailers),
                Err(_) => Err(Status::new(Code::Internal, "a frame is neither data nor trailers")),
            },
        }))
    }
}

/// Returns the end of a body that trailers stand for.
fn end(trailers: &HeaderMap) -> Result<Frame, Status> {
    match tonic::Status::from_header_map(trailers) {
        Some(status) if status.code() != tonic::Code::Ok => Err(from_tonic(&status)),
        // The content has been sent.
        _ => to_metadata(trailers)
            .map(Frame::Trailers)
            .map_err(|status| status.with_execution(Execution::Executed)),
    }
}

/// A body of `apus-rpc` as an HTTP body. A response's body ends with a status in its trailers.
pub(crate) struct ToHttp {
    body: apus_rpc::Body,
    /// `None` for a response.
    request: Option<ReadToEnd>,
    ended: bool,
}

impl ToHttp {
    pub(crate) const fn request(body: apus_rpc::Body, read: ReadToEnd) -> Self {
        Self { body, request: Some(read), ended: false }
    }

    pub(crate) const fn response(body: apus_rpc::Body) -> Self {
        Self { body, request: None, ended: false }
    }
}

impl http_body::Body for ToHttp {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, tonic::Status>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_next(cx));
        if let Some(Ok(Frame::Data(data))) = frame {
            return Poll::Ready(Some(Ok(http_body::Frame::data(data))));
        }
        self.ended = true;
        let mut trailers = HeaderMap::new();
        let status = match (frame, &self.request) {
            (Some(Err(status)), Some(_)) => return Poll::Ready(Some(Err(to_tonic(&status)))),
            (None, Some(read)) => {
                read.set();
                return Poll::Ready(None);
            }
            (Some(Err(status)), None) => to_tonic(&status),
            (Some(Ok(Frame::Trailers(metadata))), request) => {
                if let Some(read) = request {
                    read.set();
                }
                append(&mut trailers, &metadata);
                tonic::Status::ok("")
            }
            _ => tonic::Status::ok(""),
        };
        Poll::Ready(Some(
            status.add_header(&mut trailers).map(|()| http_body::Frame::trailers(trailers)),
        ))
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}
