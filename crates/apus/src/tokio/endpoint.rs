//! The async endpoint.

use super::Request;
use crate::call::{CallId, CallOptions, Completion};
use crate::engine::asynchronous::{self, WaitFor};
use crate::engine::shard::Shard;
use crate::engine::wait_target::{
    AllAcknowledged, AnyCompletion, AnyRequest, EndOf, Room, WaitTarget,
};
use crate::error::{BindError, CallError, Closed};
use crate::handle::EndpointHandle;
use crate::submission::{Submission, cancel};
use apus_proto::Payload;
use bytes::Bytes;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

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
    /// The runtime that runs the endpoint's loop, and its timers.
    runtime: Handle,
}

impl Deref for Endpoint {
    type Target = EndpointHandle;

    fn deref(&self) -> &EndpointHandle {
        &self.handle
    }
}

impl Endpoint {
    /// Starts the task that runs the loop of `shard`, and returns its endpoint.
    pub(super) fn start(shard: Arc<Shard>, observable: bool) -> Result<Self, BindError> {
        let address = shard.local_addr();
        asynchronous::start(&shard).map_err(|source| BindError::Start { address, source })?;
        let handle = EndpointHandle::new(shard, None, observable);
        Ok(Self { handle, runtime: Handle::current() })
    }

    /// Sends a request and waits for the response. Dropping the future cancels the call.
    ///
    /// The call fails after the endpoint's [timeout](crate::EndpointBuilder::call_timeout), 60 s by
    /// default and up to a quarter more; [`CallOptions::timeout`] sets an exact limit. It fails
    /// sooner if the server ends or becomes unreachable. Waits for room if a limit of the
    /// configuration is reached.
    ///
    /// `to` is an address because a name would have to be resolved in each call. Resolve it once:
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = tokio::net::lookup_host("inventory:4000").await?.next().ok_or("the name has no address")?;
    /// let endpoint = apus::tokio::Endpoint::client().await?;
    /// assert_eq!(endpoint.call(server, "hello").await?, "HELLO");
    /// # Ok(())
    /// # }
    /// ```
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
    /// Completions that wait to be received occupy room, too: a task that both sends and receives
    /// them sets `no_wait`, and receives some when there is no room. Otherwise the wait may last
    /// until its call's time is over.
    ///
    /// The call fails after the endpoint's [timeout](crate::EndpointBuilder::call_timeout), 60 s by
    /// default and up to a quarter more.
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

    /// Waits up to `timeout` until any call that was sent has ended. Returns `None` if none has.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed and all completions have been received.
    pub async fn recv_completion_timeout(
        &self,
        timeout: Duration,
    ) -> Result<Option<Completion>, Closed> {
        Ok(self.recv_timeout(AnyCompletion, timeout).await?.map(Completion::from))
    }

    /// Returns a completion if one is available. If none is, sends what a [`Cork`](crate::Cork)
    /// holds back.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed and all completions have been received.
    pub fn try_recv_completion(&self) -> Result<Option<Completion>, Closed> {
        Ok(self.shard.try_take(&AnyCompletion)?.map(Completion::from))
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

    /// Waits up to `timeout` for a request from any client. Returns `None` if none arrives.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed.
    pub async fn recv_request_timeout(&self, timeout: Duration) -> Result<Option<Request>, Closed> {
        let arrived = self.recv_timeout(AnyRequest, timeout).await?;
        Ok(arrived.map(|arrived| Request::new(self.shard.clone(), arrived)))
    }

    /// Returns a request if one is available. If none is, sends what a [`Cork`](crate::Cork) holds
    /// back.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed.
    pub fn try_recv_request(&self) -> Result<Option<Request>, Closed> {
        let arrived = self.shard.try_take(&AnyRequest)?;
        Ok(arrived.map(|arrived| Request::new(self.shard.clone(), arrived)))
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

    /// Waits until the peers have acknowledged all messages that were sent, for example after the
    /// last reply and before the end of the process.
    ///
    /// Returns `false` if `timeout` passes, or the endpoint is closed, before that.
    pub async fn drain(&self, timeout: Duration) -> bool {
        let drained = WaitFor::new(&self.shard, AllAcknowledged);
        matches!(self.within(timeout, drained).await, Some(Some(())))
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
                    let deadline = submission.wait(self.shard.call_timeout());
                    self.wait_for_room(seen, deadline).await?;
                }
                result => return result,
            }
        }
    }

    async fn wait_for_room(&self, seen: u64, deadline: Option<Instant>) -> Result<(), CallError> {
        let room = WaitFor::new(&self.shard, Room { seen });
        let left =
            deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
        self.within(left, room).await.map(drop).ok_or_else(CallError::too_late)
    }

    /// Awaits `future` for up to `limit`. The timer is that of the endpoint's runtime, so that the
    /// caller may be outside of it.
    async fn within<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        let timeout = {
            let _inside = self.runtime.enter();
            tokio::time::timeout(limit, future)
        };
        timeout.await.ok()
    }

    async fn recv<W: WaitTarget + Unpin>(&self, want: W) -> Result<W::Output, Closed> {
        let output = WaitFor::new(&self.shard, want).await;
        output.ok_or_else(|| self.shard.lock().closed_error())
    }

    async fn recv_timeout<W: WaitTarget + Unpin>(
        &self,
        want: W,
        timeout: Duration,
    ) -> Result<Option<W::Output>, Closed> {
        self.within(timeout, self.recv(want)).await.transpose()
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
