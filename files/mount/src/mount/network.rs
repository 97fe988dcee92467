//! The server's side of a mount: sends calls, receives their responses and the server's callbacks.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use apus::{Arrival, CallOptions, Closed, Completion, Endpoint, Payload, Request};
use apus_fs_core::client::{Client, ClientCall, Clock, ServerCallback};
use apus_fs_core::wire::{CallbackResponse, frame};
use bytes::Bytes;

use super::error::MountFailure;
use super::settings::MountSettings;
use crate::poll::endpoint_poll_mode;
use crate::stations;

/// Messages that are received before the kernel is served again.
const BURST: usize = 64;

/// Interval after which a call that found no room is sent again, if no event occurs earlier. The
/// end of other calls makes room.
const RETRY: Duration = Duration::from_millis(1);

/// Maximum number of callbacks that wait for the client. Chosen by us: a server has fewer
/// outstanding, and any other host may send some.
const MAX_CALLBACKS: usize = 1024;

/// An endpoint, and its outstanding calls and callbacks.
pub(super) struct Network {
    endpoint: Endpoint,
    server: SocketAddr,
    /// Calls that found no room, in order.
    unsent: VecDeque<(ClientCall, Payload)>,
    outstanding: HashSet<ClientCall>,
    callbacks: HashMap<ServerCallback, Request>,
    last_callback: u64,
}

impl Network {
    /// Opens an endpoint that calls the server and receives its callbacks.
    ///
    /// # Errors
    ///
    /// The system grants no socket.
    pub(super) fn open(settings: &MountSettings) -> Result<Self, MountFailure> {
        let server = settings.server;
        let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let poll = endpoint_poll_mode(settings.poll);
        let builder = Endpoint::builder().poll_mode(poll);
        #[cfg(feature = "tls")]
        let builder = match &settings.security {
            Some(security) => builder.security(security.clone()),
            None => builder,
        };
        let endpoint = builder.bind(any);
        let endpoint = endpoint.map_err(|source| MountFailure::Bind { server, source })?;
        Ok(Self {
            endpoint,
            server,
            unsent: VecDeque::new(),
            outstanding: HashSet::new(),
            callbacks: HashMap::new(),
            last_callback: 0,
        })
    }

    /// Returns the server.
    pub(super) const fn server(&self) -> SocketAddr {
        self.server
    }

    /// Returns the number of calls that have not ended.
    pub(super) fn outstanding(&self) -> u64 {
        self.outstanding.len() as u64
    }

    /// Hands a burst of messages to the core, without waiting. Returns whether there was any.
    ///
    /// # Errors
    ///
    /// The endpoint is closed.
    pub(super) fn receive(&mut self, client: &mut Client, clock: &Clock) -> Result<bool, Closed> {
        for count in 0..BURST {
            let Some(arrival) = self.endpoint.recv_arrival(&[], Duration::ZERO)? else {
                return Ok(count > 0);
            };
            self.take(client, clock, arrival);
        }
        Ok(true)
    }

    /// Sleeps until a message arrives, which is handed to the core, until a companion is readable,
    /// or until `timeout` has passed.
    ///
    /// # Errors
    ///
    /// The endpoint is closed.
    pub(super) fn wait(
        &mut self,
        client: &mut Client,
        companions: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<(), Closed> {
        let timeout = if self.unsent.is_empty() { timeout } else { timeout.min(RETRY) };
        if let Some(arrival) = self.endpoint.recv_arrival(companions, timeout)? {
            // Time has passed while it slept.
            self.take(client, &crate::clock::clock(), arrival);
        }
        Ok(())
    }

    fn take(&mut self, client: &mut Client, clock: &Clock, arrival: Arrival) {
        match arrival {
            Arrival::Completion(Completion { cookie, result, .. }) => {
                let call = ClientCall(cookie);
                self.outstanding.remove(&call);
                stations::response(call);
                client.handle_response(clock, call, result.ok());
            }
            Arrival::Request(request) => self.take_callback(client, clock, request),
        }
    }

    fn take_callback(&mut self, client: &mut Client, clock: &Clock, mut request: Request) {
        if !self.is_server(request.peer_addr()) || self.callbacks.len() >= MAX_CALLBACKS {
            // The sender may no longer wait.
            let _ = request.reply(frame::encode(&CallbackResponse::UnknownSession));
            return;
        }
        self.last_callback += 1;
        let callback = ServerCallback(self.last_callback);
        let message = request.take_payload();
        self.callbacks.insert(callback, request);
        client.handle_callback(clock, callback, message);
    }

    /// Returns whether a callback may be the server's. A server on this host that listens on all
    /// addresses may call from any of them.
    fn is_server(&self, peer: SocketAddr) -> bool {
        let (from, server) = (peer.ip().to_canonical(), self.server.ip().to_canonical());
        peer.port() == self.server.port()
            && (from == server || from.is_loopback() || from.is_unspecified())
    }

    /// Calls the server as soon as room is available.
    pub(super) fn call(&mut self, call: ClientCall, header: Bytes, payload: Vec<Bytes>) {
        self.outstanding.insert(call);
        let message = Payload::from_iter(std::iter::once(header).chain(payload));
        self.unsent.push_back((call, message));
    }

    /// Sends calls in order while there is room. Returns whether a call has failed.
    pub(super) fn send(&mut self, client: &mut Client, clock: &Clock) -> bool {
        while let Some((call, message)) = self.unsent.pop_front() {
            // Every request may be repeated: batches have numbers, and all other requests state the
            // target, not the change. The call ends when the server ends or becomes unreachable: a
            // call for a lock may wait for long.
            let options = CallOptions::new().no_wait(true).idempotent(true).timeout(Duration::MAX);
            match self.endpoint.send_with(self.server, message.clone(), call.0, options) {
                Ok(_) => {}
                Err(error) if error.is_back_pressure() => {
                    self.unsent.push_front((call, message));
                    return false;
                }
                Err(_) => {
                    self.outstanding.remove(&call);
                    client.handle_response(clock, call, None);
                    return true;
                }
            }
        }
        false
    }

    /// Responds to a callback.
    pub(super) fn answer(&mut self, callback: ServerCallback, message: Bytes) {
        if let Some(request) = self.callbacks.remove(&callback) {
            // A server that no longer waits has ended the session.
            let _ = request.reply(message);
        }
    }
}
