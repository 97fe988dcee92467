//! An endpoint of either kind: run by the threads that wait, or with descriptors for an event loop.

use crate::event_endpoint::EventEndpoint;
use crate::failure::Failure;
use crate::request::Request;
use crate::status::Status;
use apus::snapshot::EndpointSnapshot;
use apus::{
    Bytes, CallError, CallId, CallOptions, Closed, Completion, EndpointHandle, Payload, Settings,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Time between two questions to a caller that waits whether to keep waiting. Chosen by us: a
/// person who presses Ctrl-C notices no delay, and twenty wake-ups a second cost nothing.
pub const INTERVAL: Duration = Duration::from_millis(50);

/// Options of a new endpoint.
#[derive(Clone, Debug, Default)]
pub struct EndpointOptions {
    /// What [`apus::EndpointBuilder`] has.
    pub settings: Settings,
    /// Whether the endpoint has descriptors for an event loop. A thread of its own then runs the
    /// loop, and `poll` and `engine` in the settings have no effect.
    pub descriptors: bool,
}

impl EndpointOptions {
    /// Reads options from TOML text: the keys of `docs/configuration.md`.
    ///
    /// # Errors
    ///
    /// [`Status::InvalidOptions`]: the text has an unknown key or an invalid value.
    pub fn parse(toml: &str, descriptors: bool) -> Result<Self, Failure> {
        Ok(Self { settings: toml.parse()?, descriptors })
    }
}

/// For how long to wait, and what may end the wait early.
pub struct Patience<'a> {
    /// The longest time to wait; `None` for no limit.
    pub timeout: Option<Duration>,
    /// Is asked after each [`INTERVAL`]; `false` ends the wait. `None`: the wait goes on.
    pub keep_waiting: Option<&'a mut dyn FnMut() -> bool>,
}

impl Patience<'_> {
    /// Returns a limit that nothing ends early.
    #[must_use]
    pub const fn up_to(timeout: Option<Duration>) -> Self {
        Self { timeout, keep_waiting: None }
    }

    /// Returns the end of the next part of a wait that ends at `deadline`.
    fn next(&self, deadline: Option<Instant>) -> Option<Instant> {
        let part = self.keep_waiting.is_some().then(|| Instant::now() + INTERVAL);
        match (part, deadline) {
            (Some(part), Some(deadline)) => Some(part.min(deadline)),
            (part, deadline) => part.or(deadline),
        }
    }

    /// Returns whether to wait further, after a part of the wait.
    fn continues(&mut self, deadline: Option<Instant>) -> bool {
        deadline.is_none_or(|deadline| Instant::now() < deadline)
            && self.keep_waiting.as_mut().is_none_or(|keep_waiting| keep_waiting())
    }
}

/// Client and server at once, for other languages. Any number of threads may use it at a time.
pub struct Endpoint {
    kind: Kind,
}

enum Kind {
    Blocking(apus::Endpoint),
    Events(Box<EventEndpoint>),
}

impl Endpoint {
    /// Opens an endpoint that serves requests at `address` (`HOST:PORT`), or without an address one
    /// that does not, at a free port.
    ///
    /// # Errors
    ///
    /// The address cannot be resolved or bound, or the system refuses a resource.
    pub fn open(address: Option<&str>, options: EndpointOptions) -> Result<Self, Failure> {
        let EndpointOptions { settings, descriptors } = options;
        let kind = if descriptors {
            Kind::Events(Box::new(EventEndpoint::open(address.map(str::to_owned), settings)?))
        } else {
            let builder = apus::Endpoint::builder().settings(&settings);
            Kind::Blocking(match address {
                Some(address) => builder.bind(address)?,
                None => builder.client()?,
            })
        };
        Ok(Self { kind })
    }

    /// Returns the handle: what does not wait.
    #[must_use]
    pub fn handle(&self) -> &EndpointHandle {
        match &self.kind {
            Kind::Blocking(endpoint) => endpoint,
            Kind::Events(events) => &events.endpoint,
        }
    }

    /// Returns all counters and gauges by name, the sum of all shards; docs/metrics.md describes them.
    #[must_use]
    pub fn metrics(&self) -> BTreeMap<String, u64> {
        let handle = self.handle();
        let EndpointSnapshot { mut counters, mut gauges, .. } =
            EndpointSnapshot::new(handle.local_addr(), &handle.metrics());
        counters.append(&mut gauges);
        counters
    }

    /// Sends a request and waits for the response; see [`apus::Endpoint::call_with`]. The limit of
    /// time is in `options`.
    ///
    /// # Errors
    ///
    /// The reason, and whether the request may have been executed.
    pub fn call(
        &self,
        to: SocketAddr,
        request: Payload,
        options: CallOptions,
        keep_waiting: Option<&mut dyn FnMut() -> bool>,
    ) -> Result<Bytes, CallError> {
        match (&self.kind, keep_waiting) {
            (Kind::Blocking(endpoint), None) => endpoint.call_with(to, request, options),
            (Kind::Blocking(endpoint), Some(keep_waiting)) => {
                endpoint.call_interruptible(to, request, options, INTERVAL, keep_waiting)
            }
            (Kind::Events(events), None) => events.call(to, request, options, INTERVAL, || true),
            (Kind::Events(events), Some(keep_waiting)) => {
                events.call(to, request, options, INTERVAL, keep_waiting)
            }
        }
    }

    /// Sends a request and does not wait for the response; see [`apus::Endpoint::send_with`].
    ///
    /// # Errors
    ///
    /// Nothing was sent.
    pub fn send(
        &self,
        to: SocketAddr,
        request: Payload,
        cookie: u64,
        options: CallOptions,
    ) -> Result<CallId, CallError> {
        match &self.kind {
            Kind::Blocking(endpoint) => endpoint.send_with(to, request, cookie, options),
            Kind::Events(events) => events.send(to, request, cookie, options),
        }
    }

    /// Waits for a completion, then appends up to `limit` of those that are there. Returns their
    /// number: 0 if the wait ended before.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed and all completions have been received.
    pub fn recv_completions(
        &self,
        into: &mut Vec<Completion>,
        limit: usize,
        patience: Patience<'_>,
    ) -> Result<usize, Closed> {
        match &self.kind {
            Kind::Blocking(endpoint) => receive(patience, limit, |timeout| {
                Ok(endpoint.recv_completion_timeout(timeout)?.map(|first| into.push(first)))
            }),
            Kind::Events(_) if limit == 0 => Ok(0),
            Kind::Events(events) => wait(
                patience,
                || events.completions.take(into, limit),
                |until| events.completions.wait(until),
            ),
        }
    }

    /// Waits for a request, then appends up to `limit` of those that are there. Returns their
    /// number: 0 if the wait ended before.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed.
    pub fn recv_requests(
        &self,
        into: &mut Vec<Request>,
        limit: usize,
        patience: Patience<'_>,
    ) -> Result<usize, Closed> {
        match &self.kind {
            Kind::Blocking(endpoint) => receive(patience, limit, |timeout| {
                let request = endpoint.recv_request_timeout(timeout)?;
                Ok(request.map(|request| into.push(Request::blocking(request))))
            }),
            Kind::Events(_) if limit == 0 => Ok(0),
            Kind::Events(events) => {
                let mut arrived = Vec::new();
                let count = wait(
                    patience,
                    || events.requests.take(&mut arrived, limit),
                    |until| events.requests.wait(until),
                )?;
                let request = |arrived| Request::events(arrived, &events.runtime);
                into.extend(arrived.into_iter().map(request));
                Ok(count)
            }
        }
    }

    /// Returns the descriptor that is readable while completions may be there (BIND-1). Only to
    /// be polled: reading from it loses announcements.
    ///
    /// # Errors
    ///
    /// [`Status::NoDescriptors`]
    pub fn completion_descriptor(&self) -> Result<BorrowedFd<'_>, Failure> {
        Ok(self.events()?.completions.descriptor())
    }

    /// Returns the descriptor that is readable while requests may be there (BIND-1). Only to be
    /// polled: reading from it loses announcements.
    ///
    /// # Errors
    ///
    /// [`Status::NoDescriptors`]
    pub fn request_descriptor(&self) -> Result<BorrowedFd<'_>, Failure> {
        Ok(self.events()?.requests.descriptor())
    }

    fn events(&self) -> Result<&EventEndpoint, Failure> {
        match &self.kind {
            Kind::Events(events) => Ok(events),
            Kind::Blocking(_) => Err(Failure::new(
                Status::NoDescriptors,
                "the endpoint has no descriptors: open it with them",
            )),
        }
    }

    /// Waits up to `timeout` until the peers have acknowledged all messages; see
    /// [`apus::Endpoint::drain`].
    #[must_use]
    pub fn drain(&self, timeout: Duration) -> bool {
        match &self.kind {
            Kind::Blocking(endpoint) => endpoint.drain(timeout),
            Kind::Events(events) => events.runtime.block_on(events.endpoint.drain(timeout)),
        }
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("handle", self.handle()).finish_non_exhaustive()
    }
}

/// Waits for the first message of a blocking endpoint, and takes others that are there. `take`
/// waits for up to a time, and returns whether it has taken one.
fn receive(
    mut patience: Patience<'_>,
    limit: usize,
    mut take: impl FnMut(Duration) -> Result<Option<()>, Closed>,
) -> Result<usize, Closed> {
    if limit == 0 {
        return Ok(0);
    }
    let deadline = patience.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let until = patience.next(deadline);
        let part = until.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
        if take(part)?.is_some() {
            break;
        }
        if !patience.continues(deadline) {
            return Ok(0);
        }
    }
    let mut count = 1;
    // An error is returned by the next call.
    while count < limit && matches!(take(Duration::ZERO), Ok(Some(()))) {
        count += 1;
    }
    Ok(count)
}

/// Takes messages of an endpoint with descriptors, waiting until there are some.
fn wait(
    mut patience: Patience<'_>,
    mut take: impl FnMut() -> Result<usize, Closed>,
    wait: impl Fn(Option<Instant>),
) -> Result<usize, Closed> {
    let mut deadline = None;
    loop {
        let count = take()?;
        if count > 0 || patience.timeout == Some(Duration::ZERO) {
            return Ok(count);
        }
        // The clock is read only by those that wait.
        if deadline.is_none() {
            deadline = patience.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        }
        wait(patience.next(deadline));
        if !patience.continues(deadline) {
            return take();
        }
    }
}
