//! What does an application talk to?

use crate::builder::EndpointBuilder;
use crate::call::{CallId, CallOptions, Completion};
use crate::cork::Cork;
use crate::engine::metrics::EngineMetrics;
use crate::engine::shard::{Locked, Shard};
use crate::engine::wait_target::{AllAcknowledged, AnyCompletion, AnyRequest, EndOf, Room};
use crate::error::{BindError, CallError, Closed};
#[cfg(feature = "introspection")]
use crate::introspection::Presence;
use crate::request::Request;
use crate::submit::{Submission, cancel};
use apus_proto::{DurationHistogram, Payload, RpcInfo, SizeHistogram};
use bytes::Bytes;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Client and server at once: sends requests to any number of peers and serves theirs.
///
/// Clones are the same endpoint; any thread may use any of them at any time. When the last clone is
/// dropped, the endpoint is shut down.
///
/// # A server
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = apus::Endpoint::bind("0.0.0.0:4000")?;
/// loop {
///     let request = endpoint.recv_request()?;
///     let response = request.payload().to_ascii_uppercase();
///     // A client that has gone is none of our business.
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
/// [`Endpoint::send`] does not wait. The ends of calls that were sent come out of [`Endpoint::recv_completion`] in
/// the order in which they end, each with the cookie that it was sent with. A [`Cork`] lets the
/// messages of a busy thread leave together.
#[derive(Clone)]
pub struct Endpoint {
    shard: Arc<Shard>,
    _engine: Arc<EngineThread>,
}

/// The thread behind an endpoint; ends with the last clone.
struct EngineThread {
    #[cfg(feature = "introspection")]
    _presence: Option<Presence>,
    shard: Arc<Shard>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// All counters of an endpoint.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// What the protocol counts.
    pub protocol: apus_proto::Metrics,
    /// What the engine counts.
    pub engine: EngineMetrics,
    /// Messages that the application got, by length, whichever way they came.
    pub messages: SizeHistogram,
    /// How long calls took that went through memory: one in 64 is timed, and counts for all of them.
    pub local_calls: DurationHistogram,
    /// What waits at the moment.
    pub queues: Queues,
    /// What the driver counts, by name; for the UDP driver see [`apus_socket::SocketCounters`].
    pub driver: Vec<(&'static str, u64)>,
}

apus_proto::__counters! {
    /// What waits in an endpoint at the moment, whichever way it came or goes.
    Queues {
        /// Calls whose end nobody has received.
        calls,
        /// Requests that wait for a thread of the application.
        requests_waiting,
        /// Ends of calls that wait for a thread of the application.
        ends_waiting,
    }
}

impl Endpoint {
    pub(crate) fn new(shard: Arc<Shard>, thread: JoinHandle<()>, observable: bool) -> Self {
        #[cfg(not(feature = "introspection"))]
        let _ = observable;
        let engine = EngineThread {
            #[cfg(feature = "introspection")]
            _presence: observable.then(|| Presence::enter(&shard)).flatten(),
            shard: shard.clone(),
            thread: Mutex::new(Some(thread)),
        };
        Self { shard, _engine: Arc::new(engine) }
    }

    /// What the engine's own tests look into.
    #[cfg(all(test, not(apus_loom)))]
    pub(crate) fn shard(&self) -> &Arc<Shard> {
        &self.shard
    }

    /// Settings other than the defaults.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::default()
    }

    /// An endpoint with a UDP socket at `address`, that serves requests. Port 0 takes any free one.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the address cannot be resolved or bound, or the system refuses a resource.
    pub fn bind(address: impl ToSocketAddrs + std::fmt::Debug) -> Result<Self, BindError> {
        Self::builder().bind(address)
    }

    /// An endpoint at any free port that does not serve requests.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::bind`].
    pub fn client() -> Result<Self, BindError> {
        Self::builder().client()
    }

    /// The address of the socket. The IP address is unspecified if it listens on all of the host's.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shard.local_addr
    }

    /// Sends a request and waits for the response.
    ///
    /// # Errors
    ///
    /// [`CallError`], which also says whether the request may have been executed.
    pub fn call(&self, to: SocketAddr, request: impl Into<Payload>) -> Result<Bytes, CallError> {
        self.call_with(to, request, CallOptions::new())
    }

    /// The same with options.
    ///
    /// # Errors
    ///
    /// [`CallError`], which also says whether the request may have been executed.
    pub fn call_with(
        &self,
        to: SocketAddr,
        request: impl Into<Payload>,
        options: CallOptions,
    ) -> Result<Bytes, CallError> {
        let mut submission =
            Submission { to, payload: request.into(), options, shared: None, called: 0 };
        let (core, call) = self.submit(&mut submission)?;
        // The protocol watches the deadline.
        let (core, ended) = self.shard.wait_for(core, &EndOf(call.key), None);
        match ended {
            Some(response) => {
                drop(core);
                response.give().map_err(CallError::Failed)
            }
            None => Err(core.closed_error().into()),
        }
    }

    /// Sends a request. Its end will come out of [`Endpoint::recv_completion`], together with `cookie`.
    ///
    /// Waits for room if too much is under way (see [`CallOptions::no_wait`]).
    ///
    /// # Errors
    ///
    /// [`CallError`]: nothing was sent.
    pub fn send(
        &self,
        to: SocketAddr,
        request: impl Into<Payload>,
        cookie: u64,
    ) -> Result<CallId, CallError> {
        self.send_with(to, request, cookie, CallOptions::new())
    }

    /// The same with options.
    ///
    /// # Errors
    ///
    /// [`CallError`]: nothing was sent.
    pub fn send_with(
        &self,
        to: SocketAddr,
        request: impl Into<Payload>,
        cookie: u64,
        options: CallOptions,
    ) -> Result<CallId, CallError> {
        let mut submission =
            Submission { to, payload: request.into(), options, shared: Some(cookie), called: 0 };
        self.submit(&mut submission).map(|(_, call)| call)
    }

    /// Waits for the end of any call that was sent.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint does not work any more, and all ends have been received.
    pub fn recv_completion(&self) -> Result<Completion, Closed> {
        self.recv_until(None).transpose().unwrap_or_else(|| Err(self.shard.lock().closed_error()))
    }

    /// The same, but no longer than `time`; `None` if nothing ended in it.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::recv_completion`].
    pub fn recv_completion_timeout(&self, time: Duration) -> Result<Option<Completion>, Closed> {
        self.recv_until(Instant::now().checked_add(time))
    }

    /// The end of a call if there is one already. Looks at the network once, and sends what a cork holds
    /// back, if there is none.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::recv_completion`].
    pub fn try_recv_completion(&self) -> Result<Option<Completion>, Closed> {
        self.recv_completion_timeout(Duration::ZERO)
    }

    /// Waits for the end of any call that was sent, and appends it and all others that are there, at most
    /// `limit`, to `ends`. Returns how many.
    ///
    /// For threads with many calls under way: cheaper than receiving them one by one.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::recv_completion`].
    pub fn recv_completions(
        &self,
        ends: &mut Vec<Completion>,
        limit: usize,
    ) -> Result<usize, Closed> {
        if limit == 0 {
            return Ok(0);
        }
        let (mut core, first) = self.shard.wait_for(self.shard.lock(), &AnyCompletion, None);
        let Some(first) = first else { return Err(core.closed_error()) };
        Ok(core.take_all(&AnyCompletion, first, limit, |ended| ends.push(ended.into())))
    }

    /// Waits for a request of any client.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint does not work any more.
    pub fn recv_request(&self) -> Result<Request, Closed> {
        self.recv_request_until(None)
            .transpose()
            .unwrap_or_else(|| Err(self.shard.lock().closed_error()))
    }

    /// The same, but no longer than `time`; `None` if no request came in it.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::recv_request`].
    pub fn recv_request_timeout(&self, time: Duration) -> Result<Option<Request>, Closed> {
        self.recv_request_until(Instant::now().checked_add(time))
    }

    /// A request if there is one already. Looks at the network once, and sends what a cork holds back, if
    /// there is none.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::recv_request`].
    pub fn try_recv_request(&self) -> Result<Option<Request>, Closed> {
        self.recv_request_timeout(Duration::ZERO)
    }

    /// Waits for a request of any client, and appends it and all others that are there, at most `limit`, to
    /// `requests`. Returns how many.
    ///
    /// For threads that serve many small requests: cheaper than receiving them one by one. Other threads
    /// that wait get none of those.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::recv_request`].
    pub fn recv_requests(
        &self,
        requests: &mut Vec<Request>,
        limit: usize,
    ) -> Result<usize, Closed> {
        if limit == 0 {
            return Ok(0);
        }
        let (mut core, first) = self.shard.wait_for(self.shard.lock(), &AnyRequest, None);
        let Some(first) = first else { return Err(core.closed_error()) };
        let request = |arrived| Request::new(self.shard.clone(), arrived);
        Ok(core.take_all(&AnyRequest, first, limit, |arrived| requests.push(request(arrived))))
    }

    /// Lets a call go that was sent: its end will not come out of [`Endpoint::recv_completion`]. `false` if it has
    /// ended already. The server may have executed it.
    pub fn cancel(&self, call: CallId) -> bool {
        cancel(&mut self.shard.lock(), call)
    }

    /// Holds the messages of this endpoint back, so that they leave together: when a thread waits for
    /// something, when 32 have gathered, or when the cork is dropped.
    ///
    /// For threads that handle many small messages one after the other: their packets leave in one
    /// system call. A thread that computes for long between two messages should not hold a cork.
    pub fn cork(&self) -> Cork<'_> {
        Cork::hold(&self.shard)
    }

    /// Waits until all messages that were sent have arrived, or `time` is over; whether they have.
    /// After a reply and before the end of the process, say. `false` if the endpoint was shut down before.
    pub fn drain(&self, time: Duration) -> bool {
        let deadline = Instant::now().checked_add(time);
        self.shard.wait_for(self.shard.lock(), &AllAcknowledged, deadline).1.is_some()
    }

    /// Ends everything: calls under way fail, requests are refused, and whoever waits is told. Does
    /// nothing if the endpoint is closed already.
    pub fn shutdown(&self) {
        self.shard.lock().close(Closed::ShutDown);
    }

    /// Asks all peers with whom this endpoint has a session, or shares memory, to freeze their traces
    /// ([`trace`](crate::trace)), and freezes that of this process; how many were asked: whoever is met in both ways is asked
    /// in both, and counts twice. They do so if they are set up to
    /// ([`FreezeTriggers::obey_peers`](crate::trace::FreezeTriggers::obey_peers)), and nobody answers. Packets may be lost: ask
    /// again, it does no harm.
    pub fn freeze_peers(&self) -> usize {
        self.shard.lock().freeze_peers()
    }

    /// Whether calls to peers of this host can go through memory ([`EndpointBuilder::local`]): it was wanted, and the system
    /// gave what it takes.
    #[must_use]
    pub fn has_local_path(&self) -> bool {
        self.shard.has_local_path()
    }

    /// All RPCs that live, in either role.
    #[must_use]
    pub fn info(&self) -> Vec<RpcInfo> {
        self.shard.lock().transport.info()
    }

    /// All counters as they stand.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.shard.metrics()
    }

    /// Makes a call, waiting for room if necessary.
    fn submit(&self, submission: &mut Submission) -> Result<(Locked<'_>, CallId), CallError> {
        let (mut core, called) = self.shard.lock_for_call();
        submission.called = called;
        loop {
            let seen = core.room_changes();
            match submission.submit(&mut core) {
                Ok(call) => return Ok((core, call)),
                Err(error) if submission.should_wait(&error) => {
                    let deadline = submission.options.deadline;
                    submission.wait();
                    let (again, room) = self.shard.wait_for(core, &Room { seen }, deadline);
                    core = again;
                    if room.is_none() && core.closed.is_none() {
                        return Err(CallError::too_late());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn recv_until(&self, deadline: Option<Instant>) -> Result<Option<Completion>, Closed> {
        let (core, ended) = self.shard.wait_for(self.shard.lock(), &AnyCompletion, deadline);
        match ended {
            Some(ended) => Ok(Some(ended.into())),
            None if core.closed.is_some() => Err(core.closed_error()),
            None => Ok(None),
        }
    }

    fn recv_request_until(&self, deadline: Option<Instant>) -> Result<Option<Request>, Closed> {
        let (core, arrived) = self.shard.wait_for(self.shard.lock(), &AnyRequest, deadline);
        match arrived {
            Some(arrived) => Ok(Some(Request::new(self.shard.clone(), arrived))),
            None if core.closed.is_some() => Err(core.closed_error()),
            None => Ok(None),
        }
    }
}

impl Shard {
    /// All counters as they stand.
    pub(crate) fn metrics(&self) -> Metrics {
        let core = self.lock();
        Metrics {
            protocol: core.transport.metrics(),
            engine: core.engine_metrics(),
            messages: core.sizes,
            local_calls: core.local_calls,
            queues: Queues {
                calls: (core.calls.len() + core.completions.len()) as u64,
                requests_waiting: core.requests.len() as u64,
                ends_waiting: core.completions.len() as u64,
            },
            driver: self.counters.as_ref().map_or_else(Vec::new, |counters| counters.all()),
        }
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("local_addr", &self.local_addr()).finish_non_exhaustive()
    }
}

impl Drop for EngineThread {
    fn drop(&mut self) {
        self.shard.lock().close(Closed::ShutDown);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // If the engine panicked, its message has been printed; the others must be able to end.
            let _ = thread.join();
        }
    }
}
