//! The async endpoint.

use super::Request;
use crate::call::{CallId, CallOptions, Completion, OutgoingCall};
use crate::engine::poll::{AllAcknowledged, AnyCompletion, AnyRequest, EndOf, Room, WaitTarget};
use crate::engine::runners::asynchronous::WaitFor;
use crate::engine::shard::Shard;
use crate::engine::shards::{AtShard, Shards};
use crate::error::{CallError, Closed, ReplyError};
use crate::handle::EndpointHandle;
use crate::request::Replies;
use crate::submission::{Submission, Submit, cancel};
use apus_proto::Payload;
use bytes::Bytes;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// Client and server at once, for async applications; the counterpart of [`crate::Endpoint`].
///
/// Clones refer to the same endpoint, which is shut down when the last clone is dropped.
/// [`EndpointHandle`] has the methods that do not wait, such as
/// [`local_addr`](EndpointHandle::local_addr), [`metrics`](EndpointHandle::metrics) and
/// [`shutdown`](EndpointHandle::shutdown).
///
/// Any future may be dropped before it is ready: no message is lost, and a call is cancelled.
///
/// A child of fork(2) cannot use the endpoint ([`Closed::Forked`]), as for [the blocking
/// one](crate::Endpoint#fork). A runtime does not survive a fork either: a child drops the parent's
/// runtime, or leaves it alone, and makes its own.
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
    /// Returns an endpoint on `shards`, whose loops are run by tasks of the current runtime.
    pub(super) fn new(shards: Shards, observable: bool) -> Self {
        let handle = EndpointHandle::new(shards, observable);
        Self { handle, runtime: Handle::current() }
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
    /// [`CallError`]; its [`execution`](CallError::execution) tells whether the request may have
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
    /// [`CallError`]; its [`execution`](CallError::execution) tells whether the request may have
    /// been executed.
    pub async fn call_with(
        &self,
        to: SocketAddr,
        request: impl Into<Payload>,
        options: CallOptions,
    ) -> Result<Bytes, CallError> {
        let mut submission = Submission::new(to, request.into(), options, None);
        let shard = self.shards.caller()?;
        let call = self.submit(shard, &mut submission).await?;
        let mut guard = CancelOnDrop { shard, call: Some(call) };
        let response = WaitFor::new(shard, EndOf(call.key)).await;
        // The call has ended and needs no cancellation.
        guard.call = None;
        self.check_process()?;
        let response = response.ok_or_else(|| shard.lock().closed_error());
        shard.result_of(response?)
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
    /// [`CallError`]: the request was not sent.
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
    /// [`CallError`]: the request was not sent.
    pub async fn send_with(
        &self,
        to: SocketAddr,
        request: impl Into<Payload>,
        cookie: u64,
        options: CallOptions,
    ) -> Result<CallId, CallError> {
        let mut submission = Submission::new(to, request.into(), options, Some(cookie));
        self.submit(self.shards.caller()?, &mut submission).await
    }

    /// Sends the requests of `calls` in their order, and removes them from `calls`.
    /// [`Endpoint::recv_completion`] returns the outcomes later, with the cookies.
    ///
    /// For many small requests this is cheaper than sending them one by one, and they leave
    /// together, as with a [`Cork`](crate::Cork). Send a call that may be
    /// [cancelled](EndpointHandle::cancel) separately: only then does the caller get its id.
    ///
    /// Waits for room if a limit of the configuration is reached, unless [`CallOptions::no_wait`]
    /// is set.
    ///
    /// If the future is dropped, `calls` keeps the unsent ones.
    ///
    /// # Errors
    ///
    /// [`CallError`] of the first call that fails. It stays the first one in `calls`, and neither
    /// it nor those after it were sent.
    pub async fn send_many(
        &self,
        calls: &mut Vec<OutgoingCall>,
        options: CallOptions,
    ) -> Result<(), CallError> {
        let shard = self.shards.caller()?;
        while !calls.is_empty() {
            self.submit(shard, &mut Submission::many(calls, options)).await?;
        }
        Ok(())
    }

    /// Waits until any call that was sent has ended, and returns its completion.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed and all completions have been received.
    pub async fn recv_completion(&self) -> Result<Completion, Closed> {
        let (_, ended) = self.recv(self.shards.caller()?, AnyCompletion).await?;
        Ok(ended.into())
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
        let received = self.recv_timeout(self.shards.caller()?, AnyCompletion, timeout).await?;
        Ok(received.map(|(_, ended)| ended.into()))
    }

    /// Returns a completion if one is available. Otherwise, sends messages held back by a
    /// [`Cork`](crate::Cork).
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed and all completions have been received.
    pub fn try_recv_completion(&self) -> Result<Option<Completion>, Closed> {
        let received = self.shards.try_receive(self.shards.caller()?, &AnyCompletion)?;
        Ok(received.map(|(_, ended)| ended.into()))
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
        let home = self.shards.caller()?;
        self.recv_batch(home, AnyCompletion, limit, |_, ended| completions.push(ended.into())).await
    }

    /// Waits for a request from any client.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed.
    pub async fn recv_request(&self) -> Result<Request, Closed> {
        let (shard, arrived) = self.recv(self.shards.home()?, AnyRequest).await?;
        Ok(Request::new(shard.clone(), arrived))
    }

    /// Waits up to `timeout` for a request from any client. Returns `None` if none arrives.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed.
    pub async fn recv_request_timeout(&self, timeout: Duration) -> Result<Option<Request>, Closed> {
        let received = self.recv_timeout(self.shards.home()?, AnyRequest, timeout).await?;
        Ok(received.map(|(shard, arrived)| Request::new(shard.clone(), arrived)))
    }

    /// Returns a request if one is available. Otherwise, sends messages held back by a
    /// [`Cork`](crate::Cork).
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed.
    pub fn try_recv_request(&self) -> Result<Option<Request>, Closed> {
        let received = self.shards.try_receive(self.shards.home()?, &AnyRequest)?;
        Ok(received.map(|(shard, arrived)| Request::new(shard.clone(), arrived)))
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
        self.recv_batch(self.shards.home()?, AnyRequest, limit, |shard, arrived| {
            requests.push(Request::new(shard.clone(), arrived));
        })
        .await
    }

    /// Sends the responses of `replies` to their requests, in their order, and leaves `replies`
    /// empty.
    ///
    /// For many small responses this is cheaper than [replying](Request::reply) one by one, and
    /// they leave together, as with a [`Cork`](crate::Cork). Waits for room if a limit of the
    /// configuration is reached. If the future is dropped, `replies` keeps the unsent ones.
    ///
    /// # Errors
    ///
    /// The first [`ReplyError`]. The other replies are sent nonetheless.
    pub async fn reply_many(
        &self,
        replies: &mut Vec<(Request, Payload)>,
    ) -> Result<(), ReplyError> {
        let mut replies = Replies::new(replies);
        while let Some((shard, room)) = replies.reply() {
            WaitFor::new(&shard, room).await;
        }
        replies.result()
    }

    /// Waits until the peers have acknowledged all messages that were sent, for example after the
    /// last reply and before the end of the process.
    ///
    /// Returns `false` if `timeout` passes, or the endpoint is closed, before that.
    pub async fn drain(&self, timeout: Duration) -> bool {
        if self.check_process().is_err() {
            return false;
        }
        let all_drained = async {
            for shard in self.shards.all() {
                if WaitFor::new(shard, AllAcknowledged).await.is_none() {
                    return false;
                }
            }
            true
        };
        self.within(timeout, all_drained).await.unwrap_or(false)
    }

    /// Makes a call, waiting for room if necessary.
    async fn submit<W: Submit>(
        &self,
        shard: &Arc<Shard>,
        submission: &mut Submission<W>,
    ) -> Result<W::Output, CallError> {
        loop {
            // The future may have been polled before a fork.
            shard.owner().check()?;
            let (seen, result) = {
                let (mut core, called) = shard.lock_for_call();
                (core.room_changes(), submission.submit(&mut core, called))
            };
            match result {
                Err(error) if submission.should_wait(&error) => {
                    let deadline = submission.wait(shard.call_timeout());
                    // Boxed: calls rarely wait for room, and their futures stay small.
                    Box::pin(self.wait_for_room(shard, seen, deadline)).await?;
                }
                result => return result,
            }
        }
    }

    async fn wait_for_room(
        &self,
        shard: &Arc<Shard>,
        seen: u64,
        deadline: Option<Instant>,
    ) -> Result<(), CallError> {
        let room = WaitFor::new(shard, Room { seen });
        let left =
            deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
        self.within(left, room).await.map(drop).ok_or_else(CallError::too_late)
    }

    /// Awaits `future` for up to `limit`. The timer belongs to the endpoint's runtime, so that the
    /// caller may be outside of it.
    async fn within<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        let timeout = {
            let _inside = self.runtime.enter();
            tokio::time::timeout(limit, future)
        };
        timeout.await.ok()
    }

    async fn recv<'a, W: WaitTarget + Unpin + Copy>(
        &'a self,
        home: &'a Arc<Shard>,
        want: W,
    ) -> Result<AtShard<'a, W::Output>, Closed> {
        loop {
            // The future may have been polled before a fork.
            self.check_process()?;
            if let Some(received) = self.shards.steal_in_turn(home, &want) {
                return Ok(received);
            }
            if let Some(output) = WaitFor::new(home, want).await {
                return Ok((home, output));
            }
            // Asked to steal, or closed.
            self.check_process()?;
            if let Some(received) = self.shards.comply(home, &want)? {
                return Ok(received);
            }
        }
    }

    async fn recv_timeout<'a, W: WaitTarget + Unpin + Copy>(
        &'a self,
        home: &'a Arc<Shard>,
        want: W,
        timeout: Duration,
    ) -> Result<Option<AtShard<'a, W::Output>>, Closed> {
        self.within(timeout, self.recv(home, want)).await.transpose()
    }

    async fn recv_batch<W: WaitTarget + Unpin + Copy>(
        &self,
        home: &Arc<Shard>,
        want: W,
        limit: usize,
        mut push: impl FnMut(&Arc<Shard>, W::Output),
    ) -> Result<usize, Closed> {
        if limit == 0 {
            return Ok(0);
        }
        let (shard, first) = self.recv(home, want).await?;
        Ok(shard.lock().take_all(&want, first, limit, |output| push(shard, output)))
    }
}

/// Cancels a call whose future is dropped before the call has ended.
struct CancelOnDrop<'a> {
    shard: &'a Arc<Shard>,
    call: Option<CallId>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call
            && self.shard.owner().is_current()
        {
            cancel(&mut self.shard.lock(), call);
        }
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("local_addr", &self.local_addr()).finish_non_exhaustive()
    }
}
