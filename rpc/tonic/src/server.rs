//! A server for generated services, with the API of tonic's own server.

use crate::handler::handler;
use apus_rpc::{ServerControl, apus};
use bytes::Bytes;
use std::convert::Infallible;
use std::net::SocketAddr;
use tonic::server::NamedService;
use tower_service::Service;

/// Creates a server: `Server::builder().add_service(…).serve(address)`.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Server(());

/// A server with services.
#[must_use = "call `serve`"]
pub struct Router {
    add: Vec<Box<dyn FnOnce(apus_rpc::Server) -> apus_rpc::Server + Send>>,
}

/// Reason why a server ended or did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The endpoint cannot be opened.
    Bind(apus::BindError),
    /// The endpoint was closed.
    Closed(apus::Closed),
}

impl std::fmt::Display for ServeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bind(error) => error.fmt(f),
            Self::Closed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Bind(error) => Some(error),
            Self::Closed(error) => Some(error),
        }
    }
}

impl Server {
    /// Returns a server without services.
    pub const fn builder() -> Self {
        Self(())
    }

    /// Adds a generated service.
    pub fn add_service<S, B>(&mut self, service: S) -> Router
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
        Router { add: Vec::new() }.add_service(service)
    }
}

impl Router {
    /// Adds a generated service.
    pub fn add_service<S, B>(mut self, service: S) -> Self
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
        self.add.push(Box::new(move |server| server.add_service(handler(service))));
        self
    }

    /// Converts to a server of `apus-rpc`, which has limits, readiness and drain.
    pub fn add_to(self, server: apus_rpc::Server) -> apus_rpc::Server {
        self.add.into_iter().fold(server, |server, add| add(server))
    }

    /// Serves at this address until the endpoint is closed.
    ///
    /// # Errors
    ///
    /// [`ServeError`]: always, when it ends.
    pub async fn serve(self, address: SocketAddr) -> Result<(), ServeError> {
        let endpoint = apus::tokio::Endpoint::bind(address).await.map_err(ServeError::Bind)?;
        let server = self.add_to(apus_rpc::Server::new(endpoint));
        server.serve().await.map_err(ServeError::Closed)
    }

    /// Serves at this address until `signal` is ready, then drains for up to `timeout`: running
    /// calls are served, new calls are refused as not executed.
    ///
    /// # Errors
    ///
    /// [`ServeError`]: the endpoint cannot be opened, or was closed before the signal.
    pub async fn serve_with_shutdown(
        self,
        address: SocketAddr,
        timeout: std::time::Duration,
        signal: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let endpoint = apus::tokio::Endpoint::bind(address).await.map_err(ServeError::Bind)?;
        let server = self.add_to(apus_rpc::Server::new(endpoint.clone()));
        let (control, served) = server.start();
        let drained = async {
            signal.await;
            ServerControl::drain(&control, timeout).await;
            endpoint.shutdown();
        };
        tokio::select! {
            served = served => served.map_err(ServeError::Closed),
            () = drained => Ok(()),
        }
    }
}
