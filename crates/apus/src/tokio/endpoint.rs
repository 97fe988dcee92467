//! The async endpoint.

use super::Request;
use crate::builder::EndpointBuilder;
use crate::call::{CallId, CallOptions, Completion};
use crate::engine::asynchronous::{self, WaitFor};
use crate::engine::shard::{DriverSetup, Shard};
use crate::engine::wait_target::{
    AllAcknowledged, AnyCompletion, AnyRequest, EndOf, Room, WaitTarget,
};
use crate::error::{BindError, CallError, Closed};
use crate::handle::EndpointHandle;
use crate::submission::{Submission, cancel};
use apus_driver::Driver;
use apus_proto::Payload;
use bytes::Bytes;
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use tokio::net::{ToSocketAddrs, lookup_host};

/// Client and server at once, for async applications; the counterpart of [`crate::Endpoint`].
///
/// Clones refer to the same endpoint, which is shut down when the last clone is dropped. Methods
/// that do not wait, such as [`local_addr`](EndpointHandle::local_addr),
/// [`metrics`](EndpointHandle::metrics) and [`shutdown`](EndpointHandle::shutdown), are those of
/// [`EndpointHandle`].
///
/// Any future may be dropped before it is ready: no message is lost, and a call is cancelled.
#[derive(Clone)]
pub struct Endpoint {
    handle: EndpointHandle,
}

impl Deref for Endpoint {
    type Target = EndpointHandle;

    fn deref(&self) -> &EndpointHandle {
        &self.handle
    }
}

impl Endpoint {
    /// Opens a UDP socket at `address` and starts an endpoint that serves requests. Port 0 selects
    /// a free port.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the address cannot be resolved or bound, or the system refuses a resource.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with IO enabled.
    pub async fn bind(address: impl ToSocketAddrs + std::fmt::Debug) -> Result<Self, BindError> {
        Self::bind_with(EndpointBuilder::default(), address).await
    }

    /// Opens a socket at `address` and starts an endpoint with the settings of `builder`.
    ///
    /// The builder's [`Engine`](crate::Engine) and [`PollMode`](crate::PollMode) have no effect: a
    /// task of the runtime runs the endpoint's loop and sleeps when there is nothing to do.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the address cannot be resolved or bound, or the system refuses a resource.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with IO enabled.
    pub async fn bind_with(
        builder: EndpointBuilder,
        address: impl ToSocketAddrs + std::fmt::Debug,
    ) -> Result<Self, BindError> {
        let text = format!("{address:?}");
        let resolve = |source: io::Error| BindError::Resolve { address: text, source };
        let addresses: Vec<SocketAddr> = match lookup_host(address).await {
            Ok(addresses) => addresses.collect(),
            Err(error) => return Err(resolve(error)),
        };
        let opened = builder.open(&&addresses[..])?;
        Self::start(&builder, opened)
    }

    /// Opens a UDP socket at a free port and starts an endpoint that does not serve requests.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the socket cannot be opened, or the system refuses a resource.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with IO enabled.
    pub fn client() -> Result<Self, BindError> {
        Self::client_with(EndpointBuilder::default())
    }

    /// Opens a socket at a free port and starts an endpoint with the settings of `builder` that
    /// does not serve requests.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the socket cannot be opened, or the system refuses a resource.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with IO enabled.
    pub fn client_with(builder: EndpointBuilder) -> Result<Self, BindError> {
        let opened = builder.open_any()?;
        Self::start(&builder.serve(false), opened)
    }

    /// Starts an endpoint on a driver other than the built-in ones; see
    /// [`EndpointBuilder::with_driver`].
    ///
    /// # Errors
    ///
    /// [`BindError::Start`]: the system refuses a descriptor or a random seed.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with IO enabled.
    pub fn with_driver(
        builder: &EndpointBuilder,
        driver: Box<dyn Driver>,
    ) -> Result<Self, BindError> {
        Self::start(builder, builder.on_driver(driver))
    }

    fn start(builder: &EndpointBuilder, opened: DriverSetup) -> Result<Self, BindError> {
        let shard = builder.shard(opened, crate::PollMode::Block)?;
        let address = shard.local_addr();
        asynchronous::start(&shard).map_err(|source| BindError::Start { address, source })?;
        Ok(Self { handle: EndpointHandle::new(shard, None, builder.is_observable()) })
    }

    /// Sends a request and waits for the response. Dropping the future cancels the call.
    ///
    /// # Errors
    ///
    /// [`CallError`]; its [`execution`](CallError::execution) says whether the request may have
    /// been executed.
    pub async fn call(
        &self,
        to: SocketAddr,
        request: impl Into<Payload>,
    ) -> Result<Bytes, CallError> {
        self.call_with(to, request, CallOptions::new()).await
    }

    /// Sends a request with `options`, such as a timeout, and waits for the response. Dropping the
    /// future cancels the call.
    ///
    /// # Errors
    ///
    /// [`CallError`]; its [`execution`](CallError::execution) says whether the request may have
    /// been executed.
    pub async fn call_with(
        &self,
        to: SocketAddr,
        request: impl Into<Payload>,
        options: CallOptions,
    ) -> Result<Bytes, CallError> {
        let mut submission = Submission::new(to, request.into(), options, None);
        let call = self.submit(&mut submission).await?;
        let mut guard = CancelOnDrop { shard: &self.shard, call: Some(call) };
        let response = self.recv(EndOf(call.key)).await;
        // The call has ended: there is nothing left to cancel.
        guard.call = None;
        response?.into_result().map_err(CallError::Failed)
    }

    /// Sends a request and returns without waiting for the response: [`Endpoint::recv_completion`]
    /// returns the outcome later, together with `cookie`.
    ///
    /// Waits for room if a limit of the configuration is reached (see [`CallOptions::no_wait`]).
    ///
    /// # Errors
    ///
    /// [`CallError`]: nothing was sent.
    pub async fn send(
        &self,
        to: SocketAddr,
        request: impl Into<Payload>,
        cookie: u64,
    ) -> Result<CallId, CallError> {
        self.send_with(to, request, cookie, CallOptions::new()).await
    }

    /// Sends a request with `options` and returns without waiting for the response:
    /// [`Endpoint::recv_completion`] returns the outcome later, together with `cookie`.
    ///
    /// Waits for room if a limit of the configuration is reached, unless
    /// [`CallOptions::no_wait`] is set.
    ///
    /// # Errors
    ///
    /// [`CallError`]: nothing was sent.
    pub async fn send_with(
        &self,
        to: SocketAddr,
        request: impl Into<Payload>,
        cookie: u64,
        options: CallOptions,
    ) -> Result<CallId, CallError> {
        let mut submission = Submission::new(to, request.into(), options, Some(cookie));
        self.submit(&mut submission).await
    }

    /// Waits until any call that was sent has ended, and returns its completion.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed and all completions have been received.
    pub async fn recv_completion(&self) -> Result<Completion, Closed> {
        self.recv(AnyCompletion).await.map(Completion::from)
    }

    /// Waits until any call that was sent has ended, then appends up to `limit` available
    /// completions to `completions`. Returns their number, which is 0 only if `limit` is.
    ///
    /// With many outstanding calls this is cheaper than receiving completions one by one.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed and all completions have been received.
    pub async fn recv_completions(
        &self,
        completions: &mut Vec<Completion>,
        limit: usize,
    ) -> Result<usize, Closed> {
        self.recv_batch(AnyCompletion, limit, |ended| completions.push(ended.into())).await
    }

    /// Waits for a request from any client.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed.
    pub async fn recv_request(&self) -> Result<Request, Closed> {
        let arrived = self.recv(AnyRequest).await?;
        Ok(Request::new(self.shard.clone(), arrived))
    }

    /// Waits for a request from any client, then appends up to `limit` available requests to
    /// `requests`. Returns their number, which is 0 only if `limit` is.
    ///
    /// For many small requests this is cheaper than receiving them one by one. Other waiting tasks
    /// get none of the requests that one task has received in this way.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed.
    pub async fn recv_requests(
        &self,
        requests: &mut Vec<Request>,
        limit: usize,
    ) -> Result<usize, Closed> {
        let request = |arrived| Request::new(self.shard.clone(), arrived);
        self.recv_batch(AnyRequest, limit, |arrived| requests.push(request(arrived))).await
    }

    /// Waits until the peers have acknowledged all messages that were sent, or the endpoint is
    /// closed.
    pub async fn drain(&self) {
        WaitFor::new(&self.shard, AllAcknowledged).await;
    }

    /// Makes a call, waiting for room if necessary.
    async fn submit(&self, submission: &mut Submission) -> Result<CallId, CallError> {
        loop {
            let (seen, result) = {
                let (mut core, called) = self.shard.lock_for_call();
                submission.called = submission.called.max(called);
                (core.room_changes(), submission.submit(&mut core))
            };
            match result {
                Err(error) if submission.should_wait(&error) => {
                    submission.wait();
                    self.wait_for_room(seen, submission).await?;
                }
                result => return result,
            }
        }
    }

    async fn wait_for_room(&self, seen: u64, submission: &Submission) -> Result<(), CallError> {
        let room = WaitFor::new(&self.shard, Room { seen });
        match submission.options.deadline {
            None => {
                room.await;
                Ok(())
            }
            Some(deadline) => match tokio::time::timeout_at(deadline.into(), room).await {
                Ok(_) => Ok(()),
                Err(_) => Err(CallError::too_late()),
            },
        }
    }

    async fn recv<W: WaitTarget + Unpin>(&self, want: W) -> Result<W::Output, Closed> {
        let output = WaitFor::new(&self.shard, want).await;
        output.ok_or_else(|| self.shard.lock().closed_error())
    }

    async fn recv_batch<W: WaitTarget + Unpin + Copy>(
        &self,
        want: W,
        limit: usize,
        push: impl FnMut(W::Output),
    ) -> Result<usize, Closed> {
        if limit == 0 {
            return Ok(0);
        }
        let first = self.recv(want).await?;
        Ok(self.shard.lock().take_all(&want, first, limit, push))
    }
}

/// Cancels a call whose future is dropped before the call has ended.
struct CancelOnDrop<'a> {
    shard: &'a Arc<Shard>,
    call: Option<CallId>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call {
            cancel(&mut self.shard.lock(), call);
        }
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("local_addr", &self.local_addr()).finish_non_exhaustive()
    }
}
