//! An endpoint with descriptors, whose loop runs on a separate thread.

use crate::arrivals::{Arrivals, Receive, Source};
use crate::failure::Failure;
use crate::polled;
use crate::status::Status;
use apus::tokio::{Endpoint, Request};
use apus::{
    Bytes, CallError, CallId, CallOptions, Closed, Completion, Execution, FailureKind, Payload,
    RpcError, Settings,
};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::mpsc;
use std::thread::JoinHandle;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The completions of an endpoint.
pub(crate) struct Completions(Endpoint);

impl Source for Completions {
    type Message = Completion;

    fn receive(&self) -> Receive<Completion> {
        let endpoint = self.0.clone();
        Box::pin(async move { endpoint.recv_completion().await })
    }

    fn try_receive(&self) -> Result<Option<Completion>, Closed> {
        self.0.try_recv_completion()
    }
}

/// The requests of an endpoint.
pub(crate) struct Requests(Endpoint);

impl Source for Requests {
    type Message = Request;

    fn receive(&self) -> Receive<Request> {
        let endpoint = self.0.clone();
        Box::pin(async move { endpoint.recv_request().await })
    }

    fn try_receive(&self) -> Result<Option<Request>, Closed> {
        self.0.try_recv_request()
    }
}

/// An endpoint with descriptors. A separate thread runs the engine's loop, so that a busy event
/// loop keeps no peer waiting.
///
/// Fields are dropped in order: the endpoint and its waiting futures, then the thread that runs it.
pub(crate) struct EventEndpoint {
    pub(crate) completions: Arrivals<Completions>,
    pub(crate) requests: Arrivals<Requests>,
    pub(crate) endpoint: Endpoint,
    pub(crate) runtime: Handle,
    _thread: EngineThread,
}

/// The thread that runs the endpoint's loop. It ends when this value is dropped.
struct EngineThread {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for EngineThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed already.
            let _ = thread.join();
        }
    }
}

impl EventEndpoint {
    /// Opens an endpoint at `address`, or a client at a free port.
    ///
    /// # Errors
    ///
    /// The address cannot be resolved or bound, or the system refuses a thread or a descriptor.
    pub(crate) fn open(address: Option<String>, settings: Settings) -> Result<Self, Failure> {
        let refused = |error: std::io::Error| {
            Failure::new(Status::OpenFailed, format!("start the engine's thread: {error}"))
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(refused)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let (opened, endpoint) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("apus-engine".into()).spawn(move || {
            let builder = Endpoint::builder().settings(&settings);
            let opening = async {
                match address {
                    Some(address) => builder.bind(address).await,
                    None => builder.client().await,
                }
            };
            // The endpoint is sent away rather than kept, since dropping its last owner closes it.
            let _ = opened.send(runtime.block_on(opening));
            // Ends with the sender.
            let _ = runtime.block_on(stopped);
        });
        let thread = EngineThread { stop: Some(stop), thread: Some(thread.map_err(refused)?) };
        let lost = || Failure::new(Status::Internal, "the engine's thread ended while it started");
        let endpoint = endpoint.recv().map_err(|_| lost())??;
        Ok(Self {
            completions: Arrivals::new(Completions(endpoint.clone())).map_err(refused)?,
            requests: Arrivals::new(Requests(endpoint.clone())).map_err(refused)?,
            endpoint,
            runtime: handle,
            _thread: thread,
        })
    }

    /// Waits for a future of the endpoint, on the calling thread.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Makes a call and waits for its response; see [`Endpoint::call_with`]. Calls `keep_waiting`
    /// at intervals.
    pub(crate) fn call(
        &self,
        to: SocketAddr,
        request: Payload,
        options: CallOptions,
        keep_waiting: impl FnMut() -> bool,
    ) -> Result<Bytes, CallError> {
        // Dropping the future cancels the call.
        let call = pin!(self.endpoint.call_with(to, request, options));
        let result = polled::block_on(&self.runtime, call, keep_waiting);
        result.unwrap_or_else(|| Err(cancelled(Execution::Unknown)))
    }

    /// Sends a request; see [`Endpoint::send_with`]. Calls `keep_waiting` at intervals if it waits
    /// for room.
    pub(crate) fn send(
        &self,
        to: SocketAddr,
        request: Payload,
        cookie: u64,
        options: CallOptions,
        keep_waiting: impl FnMut() -> bool,
    ) -> Result<CallId, CallError> {
        let mut send = pin!(self.endpoint.send_with(to, request, cookie, options));
        let sent = polled::once(send.as_mut())
            .or_else(|| polled::block_on(&self.runtime, send, keep_waiting));
        sent.unwrap_or_else(|| Err(cancelled(Execution::NotExecuted)))
    }
}

/// The error of a call abandoned by its caller.
fn cancelled(execution: Execution) -> CallError {
    RpcError { kind: FailureKind::Cancelled, execution }.into()
}
