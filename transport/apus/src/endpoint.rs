//! The blocking endpoint.

use crate::call::{CallId, CallOptions, Completion, OutgoingCall};
use crate::engine::poll::{AllAcknowledged, AnyCompletion, AnyRequest, EndOf, Room, WaitTarget};
use crate::engine::shard::{Locked, Shard};
use crate::engine::shards::{AtShard, Shards};
use crate::error::{CallError, Closed, ReplyError};
use crate::handle::EndpointHandle;
use crate::request::{Replies, Request};
use crate::submission::{Submission, Submit};
use apus_proto::Payload;
use bytes::Bytes;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Client and server at once: sends requests to any number of peers and serves theirs.
///
/// Clones refer to the same endpoint, and any number of threads may use it at a time. The endpoint
/// is shut down when the last clone is dropped. [`EndpointHandle`] has the methods that do not
/// wait, such as [`local_addr`](EndpointHandle::local_addr), [`metrics`](EndpointHandle::metrics)
/// and [`shutdown`](EndpointHandle::shutdown).
///
/// # A server
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = apus::Endpoint::bind("0.0.0.0:4000")?;
/// loop {
///     let request = endpoint.recv_request()?;
///     let response = request.payload().to_ascii_uppercase();
///     // The client may have vanished meanwhile; the server continues.
///     let _ = request.reply(response);
/// }
/// # }
/// ```
///
/// # A client
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = apus::Endpoint::client()?;
/// let response = endpoint.call("10.0.0.7:4000".parse()?, "hello")?;
/// assert_eq!(response, "HELLO");
/// # Ok(())
/// # }
/// ```
///
/// # Many calls at a time
///
/// [`Endpoint::send`] does not wait for the response. [`Endpoint::recv_completion`] returns the
/// outcomes of such calls in the order of their ends, each with the cookie that was given to
/// `send`. A [`Cork`](crate::Cork) lets the messages of a busy thread leave together;
/// [`Endpoint::send_many`] and [`Endpoint::reply_many`] send many of them at once.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = apus::Endpoint::client()?;
/// let server = "10.0.0.7:4000".parse()?;
/// let questions = ["one", "two", "three"];
///
/// let cork = endpoint.cork();
/// for (index, question) in questions.iter().enumerate() {
///     endpoint.send(server, *question, index as u64)?;
/// }
/// drop(cork);
///
/// for _ in questions {
///     let completion = endpoint.recv_completion()?;
///     let question = questions[completion.cookie as usize];
///     println!("{question}: {:?}", completion.result);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Fork
///
/// A fork does not copy endpoints. In a child of fork(2) every operation fails with
/// [`Closed::Forked`] or does nothing, also on requests that were received before the fork, and
/// nothing is sent. Dropping the child's copies, shutting them down and exiting change nothing for
/// the parent. The parent's sockets are closed in the child before fork(3) returns there, so that
/// a daemon can bind the address of the process that it comes from, and peers notice the end of a
/// process whose children live. Endpoints that the child opens itself work as usual: a program that
/// forks workers opens an endpoint in each of them.
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
    /// Gives the engine's own tests access to its internals.
    #[cfg(all(test, not(apus_loom)))]
    pub(crate) fn shard(&self) -> &Arc<Shard> {
        self.handle.shards.main()
    }

    /// Returns an endpoint on `shards`.
    pub(crate) fn new(shards: Shards, observable: bool) -> Self {
        Self { handle: EndpointHandle::new(shards, observable) }
    }

    /// Sends a request and waits for the response.
    ///
    /// The call fails after the endpoint's [timeout](crate::EndpointBuilder::call_timeout), 60 s by
    /// default and up to a quarter more; [`CallOptions::timeout`] sets an exact limit. It fails
    /// sooner if the server ends or becomes unreachable. Waits for room if a limit of the
    /// configuration is reached.
    ///
    /// `to` is an address because a name would have to be resolved in each call. Resolve it once:
    ///
    /// ```no_run
    /// use std::net::ToSocketAddrs;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = "inventory:4000".to_socket_addrs()?.next().ok_or("the name has no address")?;
    /// let endpoint = apus::Endpoint::client()?;
    /// assert_eq!(endpoint.call(server, "hello")?, "HELLO");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`CallError`]; its [`execution`](CallError::execution) tells whether the request may have
    /// been executed.
    pub fn call(&self, to: SocketAddr, request: impl Into<Payload>) -> Result<Bytes, CallError> {
        self.call_with(to, request, CallOptions::new())
    }

    /// Sends a request with `options`, such as a timeout, and waits for the response.
    ///
    /// # Errors
    ///
    /// [`CallError`]; its [`execution`](CallError::execution) tells whether the request may have
    /// been executed.
    pub fn call_with(
        &self,
        to: SocketAddr,
        request: impl Into<Payload>,
        options: CallOptions,
    ) -> Result<Bytes, CallError> {
        let shard = self.shards.caller()?;
        let mut submission = Submission::new(to, request.into(), options, None);
        let (core, call) = submit(shard, &mut submission)?;
        // No deadline here: the protocol ends the call when its deadline passes.
        let (core, ended) = shard.wait_for(core, &EndOf(call.key), None);
        match ended {
            Some(response) => {
                drop(core);
                shard.result_of(response)
            }
            None => Err(core.closed_error().into()),
        }
    }

    /// Sends a request and returns without waiting for the response: [`Endpoint::recv_completion`]
    /// returns the outcome later, together with `cookie`.
    ///
    /// Waits for room if a limit of the configuration is reached (see [`CallOptions::no_wait`]).
    /// Completions that wait to be received occupy room, too: a thread that both sends and receives
    /// them sets `no_wait`, and receives some when there is no room. Otherwise the wait may last
    /// until its call's time is over.
    ///
    /// The call fails after the endpoint's [timeout](crate::EndpointBuilder::call_timeout), 60 s by
    /// default and up to a quarter more.
    ///
    /// # Errors
    ///
    /// [`CallError`]: the request was not sent.
    pub fn send(
        &self,
        to: SocketAddr,
        request: impl Into<Payload>,
        cookie: u64,
    ) -> Result<CallId, CallError> {
        self.send_with(to, request, cookie, CallOptions::new())
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
    pub fn send_with(
        &self,
        to: SocketAddr,
        request: impl Into<Payload>,
        cookie: u64,
        options: CallOptions,
    ) -> Result<CallId, CallError> {
        let mut submission = Submission::new(to, request.into(), options, Some(cookie));
        submit(self.shards.caller()?, &mut submission).map(|(_, call)| call)
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
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use apus::{CallOptions, Endpoint, OutgoingCall};
    ///
    /// let server = Endpoint::bind("127.0.0.1:0")?;
    /// let client = Endpoint::client()?;
    /// let words = ["one", "two", "three"];
    /// let to = server.local_addr();
    /// let call = |(cookie, word): (u64, &'static str)| OutgoingCall { to, request: word.into(), cookie };
    /// let mut calls: Vec<_> = (0..).zip(words).map(call).collect();
    /// client.send_many(&mut calls, CallOptions::new())?;
    /// assert!(calls.is_empty());
    ///
    /// let mut requests = Vec::new();
    /// while requests.len() < words.len() {
    ///     server.recv_requests(&mut requests, words.len())?;
    /// }
    /// let answer = |request: apus::Request| {
    ///     let response = request.payload().to_ascii_uppercase();
    ///     (request, response.into())
    /// };
    /// let mut replies: Vec<_> = requests.into_iter().map(answer).collect();
    /// server.reply_many(&mut replies)?;
    ///
    /// for _ in words {
    ///     let completion = client.recv_completion()?;
    ///     assert_eq!(completion.result?, words[completion.cookie as usize].to_uppercase());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`CallError`] of the first call that fails. It stays the first one in `calls`, and neither
    /// it nor those after it were sent.
    pub fn send_many(
        &self,
        calls: &mut Vec<OutgoingCall>,
        options: CallOptions,
    ) -> Result<(), CallError> {
        let shard = self.shards.caller()?;
        while !calls.is_empty() {
            submit(shard, &mut Submission::many(calls, options))?;
        }
        Ok(())
    }

    /// Waits until any call that was sent has ended, and returns its completion.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed and all completions have been received.
    pub fn recv_completion(&self) -> Result<Completion, Closed> {
        let (_, ended) = self.recv(self.shards.caller()?, &AnyCompletion)?;
        Ok(ended.into())
    }

    /// Waits up to `timeout` until any call that was sent has ended. Returns `None` if none has.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed and all completions have been received.
    pub fn recv_completion_timeout(&self, timeout: Duration) -> Result<Option<Completion>, Closed> {
        let received = self.recv_timeout(self.shards.caller()?, &AnyCompletion, timeout)?;
        Ok(received.map(|(_, ended)| ended.into()))
    }

    /// Returns a completion if one is available. Otherwise, polls the network once and sends
    /// messages held back by a [`Cork`](crate::Cork).
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed and all completions have been received.
    pub fn try_recv_completion(&self) -> Result<Option<Completion>, Closed> {
        self.recv_completion_timeout(Duration::ZERO)
    }

    /// Waits until any call that was sent has ended, then appends up to `limit` available
    /// completions to `completions`. Returns their number, which is 0 only if `limit` is.
    ///
    /// With many outstanding calls this is cheaper than receiving completions one by one.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed and all completions have been received.
    pub fn recv_completions(
        &self,
        completions: &mut Vec<Completion>,
        limit: usize,
    ) -> Result<usize, Closed> {
        let home = self.shards.caller()?;
        self.recv_batch(home, &AnyCompletion, limit, |_, ended| completions.push(ended.into()))
    }

    /// Waits for a request from any client.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed.
    pub fn recv_request(&self) -> Result<Request, Closed> {
        let (shard, arrived) = self.recv(self.shards.home()?, &AnyRequest)?;
        Ok(Request::new(shard.clone(), arrived))
    }

    /// Waits up to `timeout` for a request from any client. Returns `None` if none arrives.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed.
    pub fn recv_request_timeout(&self, timeout: Duration) -> Result<Option<Request>, Closed> {
        let received = self.recv_timeout(self.shards.home()?, &AnyRequest, timeout)?;
        Ok(received.map(|(shard, arrived)| Request::new(shard.clone(), arrived)))
    }

    /// Returns a request if one is available. Otherwise, polls the network once and sends messages
    /// held back by a [`Cork`](crate::Cork).
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed.
    pub fn try_recv_request(&self) -> Result<Option<Request>, Closed> {
        self.recv_request_timeout(Duration::ZERO)
    }

    /// Waits for a request from any client, then appends up to `limit` available requests to
    /// `requests`. Returns their number, which is 0 only if `limit` is.
    ///
    /// For many small requests this is cheaper than receiving them one by one. Other waiting
    /// threads get none of the requests that one thread has received in this way.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed.
    pub fn recv_requests(
        &self,
        requests: &mut Vec<Request>,
        limit: usize,
    ) -> Result<usize, Closed> {
        self.recv_batch(self.shards.home()?, &AnyRequest, limit, |shard, arrived| {
            requests.push(Request::new(shard.clone(), arrived));
        })
    }

    /// Sends the responses of `replies` to their requests, in their order, and leaves `replies`
    /// empty.
    ///
    /// For many small responses this is cheaper than [replying](Request::reply) one by one, and
    /// they leave together, as with a [`Cork`](crate::Cork). Waits for room if a limit of the
    /// configuration is reached.
    ///
    /// # Errors
    ///
    /// The first [`ReplyError`]. The other replies are sent nonetheless.
    pub fn reply_many(&self, replies: &mut Vec<(Request, Payload)>) -> Result<(), ReplyError> {
        let mut replies = Replies::new(replies);
        while let Some((shard, room)) = replies.reply() {
            drop(shard.wait_for(shard.lock(), &room, None));
        }
        replies.result()
    }

    /// Waits until the peers have acknowledged all messages that were sent, for example after the
    /// last reply and before the end of the process.
    ///
    /// Returns `false` if `timeout` passes, or the endpoint is closed, before that.
    pub fn drain(&self, timeout: Duration) -> bool {
        if self.check_process().is_err() {
            return false;
        }
        let deadline = Instant::now().checked_add(timeout);
        let drained = |shard: &Arc<Shard>| {
            shard.wait_for(shard.lock(), &AllAcknowledged, deadline).1.is_some()
        };
        self.shards.all().all(drained)
    }

    fn recv<'a, W: WaitTarget>(
        &'a self,
        home: &'a Arc<Shard>,
        want: &W,
    ) -> Result<AtShard<'a, W::Output>, Closed> {
        let (shard, core, output) = self.shards.receive(home, want, None, None);
        output.map(|output| (shard, output)).ok_or_else(|| core.closed_error())
    }

    fn recv_timeout<'a, W: WaitTarget>(
        &'a self,
        home: &'a Arc<Shard>,
        want: &W,
        timeout: Duration,
    ) -> Result<Option<AtShard<'a, W::Output>>, Closed> {
        let deadline = Instant::now().checked_add(timeout);
        let (shard, core, output) = self.shards.receive(home, want, None, deadline);
        if output.is_none() && core.is_closed() {
            return Err(core.closed_error());
        }
        Ok(output.map(|output| (shard, output)))
    }

    fn recv_batch<W: WaitTarget>(
        &self,
        home: &Arc<Shard>,
        want: &W,
        limit: usize,
        mut push: impl FnMut(&Arc<Shard>, W::Output),
    ) -> Result<usize, Closed> {
        if limit == 0 {
            return Ok(0);
        }
        let (shard, mut core, first) = self.shards.receive(home, want, None, None);
        let Some(first) = first else { return Err(core.closed_error()) };
        Ok(core.take_all(want, first, limit, |output| push(shard, output)))
    }
}

/// Makes a call, waiting for room if necessary.
pub(crate) fn submit<'a, W: Submit>(
    shard: &'a Shard,
    submission: &mut Submission<W>,
) -> Result<(Locked<'a>, W::Output), CallError> {
    submit_while(shard, submission, Duration::MAX, || true)
}

/// Makes a call, waiting for room if necessary; calls `keep_waiting` each time that it has waited
/// for `interval`.
pub(crate) fn submit_while<'a, W: Submit>(
    shard: &'a Shard,
    submission: &mut Submission<W>,
    interval: Duration,
    mut keep_waiting: impl FnMut() -> bool,
) -> Result<(Locked<'a>, W::Output), CallError> {
    let (mut core, called) = shard.lock_for_call();
    loop {
        let seen = core.room_changes();
        match submission.submit(&mut core, called) {
            Ok(sent) => return Ok((core, sent)),
            Err(error) if submission.should_wait(&error) => {
                let deadline = submission.wait(shard.call_timeout());
                let part = Instant::now().checked_add(interval);
                let until = match (part, deadline) {
                    (Some(part), Some(deadline)) => Some(part.min(deadline)),
                    (part, deadline) => part.or(deadline),
                };
                let (again, room) = shard.wait_for(core, &Room { seen }, until);
                core = again;
                // Whether the deadline has passed, the next attempt checks.
                if room.is_none() && !core.is_closed() && part.is_some() {
                    drop(core);
                    let keeps_waiting = keep_waiting();
                    // It may have forked.
                    shard.owner().check()?;
                    if !keeps_waiting {
                        return Err(CallError::interrupted());
                    }
                    core = shard.lock();
                }
            }
            Err(error) => return Err(error),
        }
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("local_addr", &self.local_addr()).finish_non_exhaustive()
    }
}
