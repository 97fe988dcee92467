//! An endpoint of either kind: run by waiting threads, or with descriptors for an event loop.

use crate::event_endpoint::EventEndpoint;
use crate::failure::Failure;
use crate::patience::{INTERVAL, Patience};
use crate::request::Request;
use crate::status::Status;
use apus::snapshot::EndpointSnapshot;
use apus::{
    Bytes, CallError, CallId, CallOptions, Closed, Completion, EndpointHandle, Payload, Settings,
};
use apus_process::Owned;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Options of a new endpoint.
#[derive(Clone, Debug, Default)]
pub struct EndpointOptions {
    /// The options of [`apus::EndpointBuilder`].
    pub settings: Settings,
    /// Whether the endpoint has descriptors for an event loop. A separate thread then runs the
    /// engine's loop, and `poll` and `engine` in the settings have no effect.
    pub descriptors: bool,
}

impl EndpointOptions {
    /// Parses options from TOML text with the keys of `docs/configuration.md`.
    ///
    /// # Errors
    ///
    /// [`Status::InvalidOptions`]: the text has an unknown key or an invalid value.
    pub fn parse(toml: &str, descriptors: bool) -> Result<Self, Failure> {
        Ok(Self { settings: toml.parse()?, descriptors })
    }
}

/// Client and server in one, for other languages. Any number of threads may use it at the same
/// time. In a child of a fork its operations fail, and dropping it does nothing.
pub struct Endpoint {
    kind: Owned<EndpointKind>,
}

enum EndpointKind {
    Blocking(apus::Endpoint),
    Events(Box<EventEndpoint>),
}

impl Endpoint {
    /// Opens an endpoint that serves requests at `address` (`HOST:PORT`). Without an address, opens
    /// a client at a free port.
    ///
    /// # Errors
    ///
    /// The address cannot be resolved or bound, or the system refuses a resource.
    pub fn open(address: Option<&str>, options: EndpointOptions) -> Result<Self, Failure> {
        let EndpointOptions { settings, descriptors } = options;
        let kind = if descriptors {
            EndpointKind::Events(Box::new(EventEndpoint::open(
                address.map(str::to_owned),
                settings,
            )?))
        } else {
            let builder = apus::Endpoint::builder().settings(&settings);
            EndpointKind::Blocking(match address {
                Some(address) => builder.bind(address)?,
                None => builder.client()?,
            })
        };
        Ok(Self { kind: Owned::new(kind) })
    }

    /// Returns the handle with the operations that never wait.
    #[must_use]
    pub fn handle(&self) -> &EndpointHandle {
        match &*self.kind {
            EndpointKind::Blocking(endpoint) => endpoint,
            EndpointKind::Events(events) => &events.endpoint,
        }
    }

    /// Returns all counters and gauges by name, summed over all shards. docs/metrics.md describes
    /// them.
    #[must_use]
    pub fn metrics(&self) -> BTreeMap<String, u64> {
        let handle = self.handle();
        let EndpointSnapshot { mut counters, mut gauges, .. } =
            EndpointSnapshot::new(handle.local_addr(), &handle.metrics());
        counters.append(&mut gauges);
        counters
    }

    /// Sends a request and waits for the response; see [`apus::Endpoint::call_with`]. `options`
    /// limits the time.
    ///
    /// # Errors
    ///
    /// The reason of the failure, and whether the request may have been executed.
    pub fn call(
        &self,
        to: SocketAddr,
        request: Payload,
        options: CallOptions,
        keep_waiting: Option<&mut dyn FnMut() -> bool>,
    ) -> Result<Bytes, CallError> {
        match (self.kind.own()?, keep_waiting) {
            (EndpointKind::Blocking(endpoint), None) => endpoint.call_with(to, request, options),
            (EndpointKind::Blocking(endpoint), Some(keep_waiting)) => {
                endpoint.call_interruptible(to, request, options, INTERVAL, keep_waiting)
            }
            (EndpointKind::Events(events), None) => events.call(to, request, options, || true),
            (EndpointKind::Events(events), Some(keep_waiting)) => {
                events.call(to, request, options, keep_waiting)
            }
        }
    }

    /// Sends a request without waiting for the response; see [`apus::Endpoint::send_with`]. Waits
    /// for room if a limit is reached.
    ///
    /// # Errors
    ///
    /// The request was not sent.
    pub fn send(
        &self,
        to: SocketAddr,
        request: Payload,
        cookie: u64,
        options: CallOptions,
        keep_waiting: Option<&mut dyn FnMut() -> bool>,
    ) -> Result<CallId, CallError> {
        match (self.kind.own()?, keep_waiting) {
            (EndpointKind::Blocking(endpoint), None) => {
                endpoint.send_with(to, request, cookie, options)
            }
            (EndpointKind::Blocking(endpoint), Some(keep_waiting)) => {
                endpoint.send_interruptible(to, request, cookie, options, INTERVAL, keep_waiting)
            }
            (EndpointKind::Events(events), None) => {
                events.send(to, request, cookie, options, || true)
            }
            (EndpointKind::Events(events), Some(keep_waiting)) => {
                events.send(to, request, cookie, options, keep_waiting)
            }
        }
    }

    /// Waits for a completion, then appends up to `limit` available completions. Returns their
    /// number: 0 if the wait ended first.
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
        match self.kind.own()? {
            EndpointKind::Blocking(endpoint) => receive(patience, limit, |timeout| {
                Ok(endpoint.recv_completion_timeout(timeout)?.map(|first| into.push(first)))
            }),
            EndpointKind::Events(_) if limit == 0 => Ok(0),
            EndpointKind::Events(events) => wait(
                patience,
                || {
                    // `keep_waiting` may have forked.
                    self.kind.own()?;
                    events.completions.take(into, limit)
                },
                |until| events.completions.wait(until),
            ),
        }
    }

    /// Waits for a request, then appends up to `limit` available requests. Returns their number: 0
    /// if the wait ended first.
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
        match self.kind.own()? {
            EndpointKind::Blocking(endpoint) => receive(patience, limit, |timeout| {
                let request = endpoint.recv_request_timeout(timeout)?;
                Ok(request.map(|request| into.push(Request::blocking(request))))
            }),
            EndpointKind::Events(_) if limit == 0 => Ok(0),
            EndpointKind::Events(events) => {
                let mut arrived = Vec::new();
                let count = wait(
                    patience,
                    || {
                        self.kind.own()?;
                        events.requests.take(&mut arrived, limit)
                    },
                    |until| events.requests.wait(until),
                )?;
                let request = |arrived| Request::events(arrived, &events.runtime);
                into.extend(arrived.into_iter().map(request));
                Ok(count)
            }
        }
    }

    /// Returns the descriptor that is readable while completions may be available (BIND-1). Only
    /// poll it: reading from it loses announcements.
    ///
    /// # Errors
    ///
    /// [`Status::NoDescriptors`]
    pub fn completion_descriptor(&self) -> Result<BorrowedFd<'_>, Failure> {
        Ok(self.events()?.completions.descriptor())
    }

    /// Returns the descriptor that is readable while requests may be available (BIND-1). Only poll
    /// it: reading from it loses announcements.
    ///
    /// # Errors
    ///
    /// [`Status::NoDescriptors`]
    pub fn request_descriptor(&self) -> Result<BorrowedFd<'_>, Failure> {
        Ok(self.events()?.requests.descriptor())
    }

    fn events(&self) -> Result<&EventEndpoint, Failure> {
        match self.kind.own().map_err(Closed::from)? {
            EndpointKind::Events(events) => Ok(events),
            EndpointKind::Blocking(_) => Err(Failure::new(
                Status::NoDescriptors,
                "the endpoint has no descriptors: open it with them",
            )),
        }
    }

    /// Waits until the peers have acknowledged all messages; see [`apus::Endpoint::drain`]. Returns
    /// `false` if the wait ended, or the endpoint is closed, before that.
    #[must_use]
    pub fn drain(&self, mut patience: Patience<'_>) -> bool {
        let deadline = patience.deadline();
        loop {
            // `keep_waiting` may have forked.
            let Ok(kind) = self.kind.own() else { return false };
            let until = patience.next(deadline);
            let part = until.map_or(Duration::MAX, remaining);
            let drained = match kind {
                EndpointKind::Blocking(endpoint) => endpoint.drain(part),
                EndpointKind::Events(events) => events.block_on(events.endpoint.drain(part)),
            };
            if drained {
                return true;
            }
            // A closed endpoint returns at once, for good.
            if self.handle().is_closed() || !patience.continues(deadline) {
                return false;
            }
        }
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("handle", self.handle()).finish_non_exhaustive()
    }
}

fn remaining(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

/// Waits for the first message of a blocking endpoint, and takes other available messages. `take`
/// waits up to a given time, and returns whether it took a message.
fn receive(
    mut patience: Patience<'_>,
    limit: usize,
    mut take: impl FnMut(Duration) -> Result<Option<()>, Closed>,
) -> Result<usize, Closed> {
    if limit == 0 {
        return Ok(0);
    }
    let deadline = patience.deadline();
    loop {
        let until = patience.next(deadline);
        let part = until.map_or(Duration::MAX, remaining);
        if take(part)?.is_some() {
            break;
        }
        if !patience.continues(deadline) {
            return Ok(0);
        }
    }
    let mut count = 1;
    // The next call returns the error.
    while count < limit && matches!(take(Duration::ZERO), Ok(Some(()))) {
        count += 1;
    }
    Ok(count)
}

/// Takes messages of an endpoint with descriptors; waits until some are available.
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
        // Reads the clock only if it has to wait.
        if deadline.is_none() {
            deadline = patience.deadline();
        }
        wait(patience.next(deadline));
        if !patience.continues(deadline) {
            return take();
        }
    }
}
