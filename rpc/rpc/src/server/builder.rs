//! A server and its control.

use super::call::{ServerContext, begin};
use super::health::Health;
use super::state::ServerState;
use super::streams::Streams;
use crate::handler::Handler;
use apus::Closed;
use apus::tokio::Endpoint;
use std::collections::HashMap;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Serves any number of services on an endpoint.
///
/// ```no_run
/// # async fn example(greeter: impl apus_rpc::Handler) -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = apus::tokio::Endpoint::bind("0.0.0.0:4000").await?;
/// apus_rpc::Server::new(endpoint).add_service(greeter).serve().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "call `serve`"]
pub struct Server {
    endpoint: Endpoint,
    handlers: HashMap<String, Arc<dyn Handler>>,
    max_calls: usize,
    max_streams: usize,
    max_streams_per_host: usize,
    workers: usize,
    health: Health,
}

impl Server {
    /// Default of [`Server::max_calls`].
    pub const MAX_CALLS: usize = 10_000;
    /// Default of [`Server::max_streams`].
    pub const MAX_STREAMS: usize = 10_000;
    /// Default of the second argument of [`Server::max_streams`].
    pub const MAX_STREAMS_PER_HOST: usize = 1_000;

    /// Returns a server without services.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            handlers: HashMap::new(),
            max_calls: Self::MAX_CALLS,
            max_streams: Self::MAX_STREAMS,
            max_streams_per_host: Self::MAX_STREAMS_PER_HOST,
            workers: tokio::runtime::Handle::current().metrics().num_workers(),
            health: Health::Ready,
        }
    }

    /// Adds a service; it replaces an earlier service with the same name.
    pub fn add_service(mut self, handler: impl Handler) -> Self {
        self.handlers.insert(handler.service().to_owned(), Arc::new(handler));
        self
    }

    /// Sets the maximum number of concurrent calls and streams; further calls are refused with
    /// [`Code::ResourceExhausted`](crate::Code::ResourceExhausted). The default is
    /// [`Server::MAX_CALLS`].
    pub const fn max_calls(mut self, calls: usize) -> Self {
        self.max_calls = calls;
        self
    }

    /// Sets the maximum number of open streams, of all clients and of the clients of one host;
    /// further streams are refused. The defaults are [`Server::MAX_STREAMS`] and
    /// [`Server::MAX_STREAMS_PER_HOST`].
    pub const fn max_streams(mut self, all: usize, per_host: usize) -> Self {
        self.max_streams = all;
        self.max_streams_per_host = per_host;
        self
    }

    /// Sets the number of tasks that receive requests. A handler runs in the task that received its
    /// request until it first waits, so a call that never waits costs no task. The default is the
    /// number of the runtime's workers.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// Sets whether the server is ready at start; otherwise it refuses calls until
    /// [`ServerControl::set_ready`]. The default is `true`.
    pub const fn ready(mut self, ready: bool) -> Self {
        self.health = if ready { Health::Ready } else { Health::NotReady };
        self
    }

    /// Serves until the endpoint is closed.
    ///
    /// # Errors
    ///
    /// [`Closed`]: always, when the endpoint is closed, with the reason.
    pub async fn serve(self) -> Result<(), Closed> {
        self.start().1.await
    }

    /// Returns the server's control, and the future that serves until the endpoint is closed.
    pub fn start(self) -> (ServerControl, impl Future<Output = Result<(), Closed>> + Send) {
        let state = Arc::new(ServerState::new(self.max_calls));
        state.set_health(self.health);
        let streams = Streams::new(self.max_streams, self.max_streams_per_host, state.clone());
        let streams = Arc::new(streams);
        let shared = Arc::new(ServerContext { handlers: self.handlers, state, streams });
        let control = ServerControl { shared: shared.clone(), endpoint: self.endpoint.clone() };
        let (endpoint, workers) = (self.endpoint, self.workers);
        let served = async move {
            for _ in 1..workers {
                tokio::spawn(work(endpoint.clone(), shared.clone()));
            }
            Err(work(endpoint, shared).await)
        };
        (control, served)
    }
}

/// Receives requests until the endpoint is closed. A call runs here until it first waits; then it
/// becomes a task.
async fn work(endpoint: Endpoint, shared: Arc<ServerContext>) -> Closed {
    loop {
        let mut request = match endpoint.recv_request().await {
            Ok(request) => Some(request),
            Err(closed) => return closed,
        };
        let begun = std::future::poll_fn(|cx| {
            Poll::Ready(request.take().and_then(|request| begin(&shared, request, cx)))
        });
        if let Some(rest) = begun.await {
            tokio::spawn(rest);
        }
    }
}

/// Readiness and the orderly end of a [`Server`].
#[derive(Clone)]
pub struct ServerControl {
    shared: Arc<ServerContext>,
    endpoint: Endpoint,
}

impl ServerControl {
    /// Time without a refused call until a draining server may end: 200 ms. Chosen by us: an active
    /// client calls more often than that.
    pub const QUIET: Duration = Duration::from_millis(200);

    /// Sets whether the server accepts calls. Otherwise it refuses them as not executed, and
    /// clients send them to other servers. Has no effect on a draining server.
    pub fn set_ready(&self, ready: bool) {
        if self.health() != Health::Draining {
            let health = if ready { Health::Ready } else { Health::NotReady };
            self.shared.state.set_health(health);
        }
    }

    /// Returns the server's response to [`HEALTH_METHOD`](crate::HEALTH_METHOD).
    #[must_use]
    pub fn health(&self) -> Health {
        self.shared.state.health()
    }

    /// Returns the number of running calls, including streams.
    #[must_use]
    pub fn running(&self) -> usize {
        self.shared.state.running()
    }

    /// Returns the number of statuses that were too long for the wire and were shortened
    /// ([`Status::TRUNCATED`](crate::Status::TRUNCATED)).
    #[must_use]
    pub fn truncated_statuses(&self) -> u64 {
        self.shared.state.truncated_statuses()
    }

    /// Returns the number of open streams.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.shared.streams.len()
    }

    /// Refuses new calls, and waits up to `timeout` until the running calls have ended, no call has
    /// been refused for [`ServerControl::QUIET`], and all responses have arrived. Returns whether
    /// all three conditions were met. Shut down the endpoint afterwards.
    ///
    /// A refused call was not executed, and tells its client that the server is ending: a
    /// [`Balance`](crate::Balance) sends no further calls. The quiet time is for clients that have
    /// not been refused yet. The execution of a call that reaches the host after the process has
    /// ended is unknown, so a non-idempotent call of a client that was idle until then may fail:
    /// remove the server's name first where that matters.
    pub async fn drain(&self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        self.shared.state.set_health(Health::Draining);
        let quiet = self.shared.state.quiet(Self::QUIET);
        let quiet = tokio::time::timeout_at(end.into(), quiet).await;
        let left = end.saturating_duration_since(Instant::now());
        quiet.is_ok() && self.endpoint.drain(left).await
    }
}
