//! Handlers: serve the methods of a service.

use crate::message::{Request, Response};
use crate::status::Status;
use std::pin::Pin;
use std::sync::Arc;
use tower_service::Service;

/// A boxed future.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Serves the methods of one service. `#[apus_rpc::service]` and `apus-tonic` create handlers;
/// [`from_service`] creates one from a [`tower_service::Service`].
pub trait Handler: Send + Sync + 'static {
    /// Returns the name of the service, which precedes the last `/` in the name of a method.
    fn service(&self) -> &str;

    /// Serves a call. The future is dropped when the deadline of the call passes, and a panic in it
    /// fails that call alone.
    fn call(&self, request: Request) -> BoxFuture<Result<Response, Status>>;
}

impl<H: Handler + ?Sized> Handler for Arc<H> {
    fn service(&self) -> &str {
        (**self).service()
    }

    fn call(&self, request: Request) -> BoxFuture<Result<Response, Status>> {
        (**self).call(request)
    }
}

/// Returns a handler that passes the calls of the service `name` to a tower service, with all its
/// layers.
pub fn from_service<S>(name: impl Into<String>, service: S) -> impl Handler
where
    S: Service<Request, Response = Response> + Clone + Send + Sync + 'static,
    S::Error: Into<Status>,
    S::Future: Send,
{
    FromService { name: name.into(), service }
}

struct FromService<S> {
    name: String,
    service: S,
}

impl<S> Handler for FromService<S>
where
    S: Service<Request, Response = Response> + Clone + Send + Sync + 'static,
    S::Error: Into<Status>,
    S::Future: Send,
{
    fn service(&self) -> &str {
        &self.name
    }

    fn call(&self, request: Request) -> BoxFuture<Result<Response, Status>> {
        let mut service = self.service.clone();
        Box::pin(async move {
            std::future::poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
            service.call(request).await.map_err(Into::into)
        })
    }
}
