//! What does an async application talk to?

use super::Request;
use crate::builder::EndpointBuilder;
use crate::call::{CallId, CallOptions, Completion};
use crate::endpoint::Metrics;
use crate::engine::asynchronous::{self, WaitFor};
use crate::engine::shard::{Opened, Shard};
use crate::engine::wait_target::{AllAcknowledged, AnyCompletion, AnyRequest, EndOf, Room};
use crate::error::{BindError, CallError, Closed};
#[cfg(feature = "introspection")]
use crate::introspection::Presence;
use crate::submit::{Submission, cancel};
use apus_driver::Driver;
use apus_proto::{Payload, RpcInfo};
use bytes::Bytes;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{ToSocketAddrs, lookup_host};

/// Client and server at once, for async applications. See [`crate::Endpoint`].
///
/// Clones are the same endpoint. When the last clone is dropped, it is shut down.
#[derive(Clone)]
pub struct Endpoint {
    shard: Arc<Shard>,
    _open: Arc<Open>,
}

/// Shuts the endpoint down when the last clone goes.
struct Open {
    #[cfg(feature = "introspection")]
    _presence: Option<Presence>,
    shard: Arc<Shard>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shard.lock().close(Closed::ShutDown);
    }
}

impl Endpoint {
    /// An endpoint with a UDP socket at `address`, that serves requests. Port 0 takes any free one.
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

    /// The same with other settings than the defaults. Its [`crate::Engine`] and [`crate::PollMode`] have
    /// no meaning here: a task of the runtime turns the loop, and sleeps when there is nothing to do.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::bind`].
    ///
    /// # Panics
    ///
    /// As for [`Endpoint::bind`].
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

    /// An endpoint at any free port that does not serve requests.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::bind`].
    ///
    /// # Panics
    ///
    /// As for [`Endpoint::bind`].
    pub fn client() -> Result<Self, BindError> {
        Self::client_with(EndpointBuilder::default())
    }

    /// The same with other settings than the defaults.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::bind`].
    ///
    /// # Panics
    ///
    /// As for [`Endpoint::bind`].
    pub fn client_with(builder: EndpointBuilder) -> Result<Self, BindError> {
        let opened = builder.open_any()?;
        Self::start(&builder.serve(false), opened)
    }

    /// An endpoint on top of another driver. It has no way through memory to peers of the same host.
    ///
    /// # Errors
    ///
    /// [`BindError::Start`]: the system refuses a descriptor or a random seed.
    ///
    /// # Panics
    ///
    /// As for [`Endpoint::bind`].
    pub fn with_driver(
        builder: &EndpointBuilder,
        driver: Box<dyn Driver>,
    ) -> Result<Self, BindError> {
        Self::start(builder, builder.on_top_of(driver))
    }

    fn start(builder: &EndpointBuilder, opened: Opened) -> Result<Self, BindError> {
        let shard = builder.shard(opened, crate::PollMode::Block)?;
        let address = shard.local_addr;
        asynchronous::start(&shard).map_err(|source| BindError::Start { address, source })?;
        let open = Open {
            #[cfg(feature = "introspection")]
            _presence: builder.is_observable().then(|| Presence::enter(&shard)).flatten(),
            shard: shard.clone(),
        };
        Ok(Self { _open: Arc::new(open), shard })
    }

    /// The address of the socket. The IP address is unspecified if it listens on all of the host's.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shard.local_addr
    }

    /// Sends a request and waits for the response. Dropping the future cancels the call.
    ///
    /// # Errors
    ///
    /// [`CallError`], which also says whether the request may have been executed.
    pub async fn call(
        &self,
        to: SocketAddr,
        request: impl Into<Payload>,
    ) -> Result<Bytes, CallError> {
        self.call_with(to, request, CallOptions::new()).await
    }

    /// The same with options.
    ///
    /// # Errors
    ///
    /// [`CallError`], which also says whether the request may have been executed.
    pub async fn call_with(
        &self,
        to: SocketAddr,
        request: impl Into<Payload>,
        options: CallOptions,
    ) -> Result<Bytes, CallError> {
        let mut submission =
            Submission { to, payload: request.into(), options, shared: None, called: 0 };
        let call = self.submit(&mut submission).await?;
        let mut guard = CancelOnDrop { shard: &self.shard, call: Some(call) };
        let ended = WaitFor::new(&self.shard, EndOf(call.key)).await;
        // It has ended; there is nothing to cancel any more.
        guard.call = None;
        match ended {
            Some(response) => response.give().map_err(CallError::Failed),
            None => Err(self.shard.lock().closed_error().into()),
        }
    }

    /// Sends a request. Its end will come out of [`Endpoint::recv_completion`], together with `cookie`.
    ///
    /// Waits for room if too much is under way (see [`CallOptions::no_wait`]).
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

    /// The same with options.
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
        let mut submission =
            Submission { to, payload: request.into(), options, shared: Some(cookie), called: 0 };
        self.submit(&mut submission).await
    }

    /// Waits for the end of any call that was sent.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint does not work any more, and all ends have been received.
    pub async fn recv_completion(&self) -> Result<Completion, Closed> {
        let ended = WaitFor::new(&self.shard, AnyCompletion).await;
        match ended {
            Some(ended) => Ok(ended.into()),
            None => Err(self.shard.lock().closed_error()),
        }
    }

    /// Waits for the end of any call that was sent, and appends it and all others that are there, at most
    /// `limit`, to `ends`. Returns how many.
    ///
    /// For tasks with many calls under way: cheaper than receiving them one by one.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::recv_completion`].
    pub async fn recv_completions(
        &self,
        ends: &mut Vec<Completion>,
        limit: usize,
    ) -> Result<usize, Closed> {
        if limit == 0 {
            return Ok(0);
        }
        let first = WaitFor::new(&self.shard, AnyCompletion).await;
        let mut core = self.shard.lock();
        match first {
            Some(first) => {
                Ok(core.take_all(&AnyCompletion, first, limit, |ended| ends.push(ended.into())))
            }
            None => Err(core.closed_error()),
        }
    }

    /// Waits for a request of any client.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint does not work any more.
    pub async fn recv_request(&self) -> Result<Request, Closed> {
        let arrived = WaitFor::new(&self.shard, AnyRequest).await;
        match arrived {
            Some(arrived) => Ok(Request::new(self.shard.clone(), arrived)),
            None => Err(self.shard.lock().closed_error()),
        }
    }

    /// Waits for a request of any client, and appends it and all others that are there, at most `limit`, to
    /// `requests`. Returns how many.
    ///
    /// For tasks that serve many small requests: cheaper than receiving them one by one. Other tasks that
    /// wait get none of those.
    ///
    /// # Errors
    ///
    /// As for [`Endpoint::recv_request`].
    pub async fn recv_requests(
        &self,
        requests: &mut Vec<Request>,
        limit: usize,
    ) -> Result<usize, Closed> {
        if limit == 0 {
            return Ok(0);
        }
        let first = WaitFor::new(&self.shard, AnyRequest).await;
        let mut core = self.shard.lock();
        let Some(first) = first else { return Err(core.closed_error()) };
        let request = |arrived| Request::new(self.shard.clone(), arrived);
        Ok(core.take_all(&AnyRequest, first, limit, |arrived| requests.push(request(arrived))))
    }

    /// Lets a call go that was sent: its end will not come out of [`Endpoint::recv_completion`]. `false` if it has
    /// ended already. The server may have executed it.
    pub fn cancel(&self, call: CallId) -> bool {
        cancel(&mut self.shard.lock(), call)
    }

    /// Waits until all messages that were sent have arrived, or the endpoint is closed.
    pub async fn drain(&self) {
        WaitFor::new(&self.shard, AllAcknowledged).await;
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
}

/// Cancels a call whose future is dropped before it has ended.
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
