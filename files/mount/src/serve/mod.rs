//! Serving: the loop of a server.
//!
//! One thread receives bursts of requests, hands them to the core, commits once for each burst, and
//! responds. So a commit serves all clients that wait at that moment, and a burst under load is
//! larger than one without.

mod callbacks;
mod error;
mod exports;
mod identities;
mod requests;
mod users;

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use apus::introspection::PublishedMetrics;
use apus::{Arrival, Completion, Endpoint, PollMode, Request};
use apus_fs_core::server::{ServerEffect, ServerMetrics};
use apus_fs_core::store::Store;
use apus_fs_core::wire::{Failure, Response, frame};
use bytes::Bytes;

use crate::Report;
use crate::bulk::BulkQueue;
use crate::clock::boot_time as now;
use crate::mailbox::Mailbox;
use crate::metrics;
use crate::poll::{Awaited, Idleness};
use crate::stations;
use crate::status::{Role, Status, StatusService};
use crate::time_slice;

use callbacks::Callee;
pub use error::ServeError;
pub use exports::Export;
use exports::Exports;
use identities::{Identities, UnknownClient};
use requests::Requests;

/// Messages handed to the core before a commit. Chosen by us: more than 100 clients have
/// outstanding, and a bound on the time that the first of them waits.
const BURST: usize = 256;

/// Time for the last responses to arrive. Chosen by us: a response to a running client arrives
/// within milliseconds.
const LAST_RESPONSES: Duration = Duration::from_secs(1);

/// Request of another thread to the loop.
#[derive(Debug)]
enum Letter {
    Stop,
    Metrics(SyncSender<ServerMetrics>),
}

/// Ends a [`Service`] from another thread.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<Mailbox<Letter>>);

impl Stopper {
    /// Has the service commit, respond and end.
    pub fn stop(&self) {
        self.0.send(Letter::Stop);
    }
}

/// A server's loop and its state.
pub struct Service<S> {
    endpoint: Endpoint,
    exports: Exports<S>,
    identities: Identities,
    requests: Requests,
    /// Reads of many bytes, with their messages.
    bulk: BulkQueue<(Request, Bytes)>,
    mailbox: Arc<Mailbox<Letter>>,
    idleness: Idleness,
    report: Report,
    _status: StatusService,
    _metrics: PublishedMetrics,
}

impl<S: Store> Service<S> {
    /// Joins exports to an endpoint that receives requests.
    ///
    /// # Errors
    ///
    /// Two exports have one name, there are more than 256, or the system grants no descriptor.
    pub fn new(
        endpoint: Endpoint,
        exports: Vec<Export<S>>,
        poll: PollMode,
        report: Report,
    ) -> Result<Self, ServeError> {
        let exports = Exports::new(exports)?;
        stations::name_values();
        let mailbox = Mailbox::new().map_err(|source| ServeError::Mailbox { source })?;
        let mailbox = Arc::new(mailbox);
        let status = Status {
            role: Role::Server,
            pid: std::process::id(),
            address: endpoint.local_addr(),
            path: exports.iter().map(shown).collect::<Vec<_>>().join(", "),
            read_only: exports.iter().all(|export| export.read_only),
            mount: None,
        };
        let identities = Identities::new(endpoint.local_addr());
        Ok(Self {
            endpoint,
            exports,
            identities,
            requests: Requests::default(),
            bulk: BulkQueue::new(),
            idleness: Idleness::new(poll),
            report,
            _status: StatusService::fixed(&status),
            _metrics: metrics::publish(mailbox.clone(), Letter::Metrics, metrics::server_families),
            mailbox,
        })
    }

    /// Returns a handle that ends the service from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.mailbox.clone())
    }

    /// Serves until it is stopped, and returns the stores. Every change that it has confirmed is
    /// durable. The calling thread has short time slices from then on (see `time_slice`).
    ///
    /// # Errors
    ///
    /// A store can no longer guarantee durability, or the network fails.
    pub fn run(mut self) -> Result<Vec<S>, ServeError> {
        // If the system refuses it, answers are merely later while other threads are busy.
        let _ = time_slice::shorten();
        loop {
            let worked = self.receive_burst()?;
            if worked || self.is_due() {
                self.commit()?;
            }
            if self.serve_bulk()? || worked {
                self.idleness.end();
            }
            if self.read_letters() {
                while self.serve_bulk()? {}
                self.commit()?;
                self.endpoint.drain(LAST_RESPONSES);
                return Ok(self.exports.into_iter().map(|it| it.server.into_store()).collect());
            }
        }
    }

    /// Answers questions of other threads. Returns whether the service is to end.
    fn read_letters(&mut self) -> bool {
        let mut is_stopping = false;
        for letter in self.mailbox.take() {
            match letter {
                Letter::Stop => is_stopping = true,
                // The requesting thread may have given up.
                Letter::Metrics(sender) => {
                    let mut all = ServerMetrics::default();
                    self.exports.iter().for_each(|export| all.add(&export.server.metrics()));
                    drop(sender.try_send(all));
                }
            }
        }
        is_stopping
    }

    /// Receives all available messages, and waits for the first one if it may sleep. Returns
    /// whether any was received.
    fn receive_burst(&mut self) -> Result<bool, ServeError> {
        let mut count = 0;
        while count < BURST {
            let timeout = if count == 0 { self.patience() } else { Duration::ZERO };
            let companions = [rustix::fd::AsFd::as_fd(&*self.mailbox)];
            let arrival = self.endpoint.recv_arrival(&companions, timeout);
            match arrival.map_err(|source| ServeError::Network { source })? {
                Some(Arrival::Request(request)) => self.take_request(request),
                Some(Arrival::Completion(completion)) => self.take_completion(completion),
                None => break,
            }
            count += 1;
        }
        Ok(count > 0)
    }

    /// Returns the maximum time that the loop may sleep now.
    fn patience(&mut self) -> Duration {
        if !self.bulk.is_empty() || !self.idleness.may_sleep(Awaited::Request) {
            return Duration::ZERO;
        }
        match self.next_deadline() {
            Some(deadline) => deadline.saturating_sub(now()),
            None => Duration::MAX,
        }
    }

    fn next_deadline(&self) -> Option<Duration> {
        self.exports.iter().filter_map(|export| export.server.next_deadline()).min()
    }

    fn is_due(&self) -> bool {
        self.next_deadline().is_some_and(|deadline| deadline <= now())
    }

    /// Hands a request to the server of its export, unless its peer is not trusted (FSRUN-1).
    fn take_request(&mut self, mut request: Request) {
        let peer = request.peer_addr();
        let message = request.take_payload();
        let Err(refusal) = self.exports.find(peer, &message) else {
            let bytes = requests::bytes_to_read(&message);
            if let Some((request, message)) = self.bulk.admit(bytes, (request, message)) {
                self.handle(request, message);
            }
            return;
        };
        if let Some(name) = refusal.export {
            let ip = peer.ip().to_canonical();
            let remedy = match name.as_str() {
                "" => format!("`--trust {ip}`"),
                name => format!("`trust = [\"{ip}\"]` of export {name}"),
            };
            let line = format!("refused {ip}: {remedy} would serve it, unencrypted unless sealed");
            (self.report)(&line);
        }
        // A client that no longer waits needs no response.
        let _ = request.reply(frame::encode(&Response::Failed(refusal.failure)));
    }

    /// Hands a request of a trusted peer to the server of its export.
    fn handle(&mut self, request: Request, message: Bytes) {
        let peer = request.peer_addr();
        let Ok(export) = self.exports.find(peer, &message) else { return };
        let rights = self.identities.rights(now(), &request, export.server.settings());
        let rights = match rights {
            Ok(rights) => rights,
            Err(unknown) => {
                if export.trust.reports_refusal(peer) {
                    (self.report)(&format!("refused {peer}: {unknown}"));
                }
                if unknown == UnknownClient::User {
                    // A client that no longer waits needs no response.
                    let _ = request.reply(frame::encode(&Response::Failed(Failure::NotTrusted)));
                }
                // Without a response, the client tries again.
                return;
            }
        };
        let call = self.requests.add(request);
        let began = stations::stamp();
        let kind = export.server.handle_request_as(now(), peer, rights, call, message);
        if let Some(kind) = kind {
            stations::request(began, call, kind);
        }
    }

    /// Serves one read of many bytes. Returns whether there was any.
    fn serve_bulk(&mut self) -> Result<bool, ServeError> {
        let Some((request, message)) = self.bulk.pop() else { return Ok(false) };
        self.handle(request, message);
        self.commit()?;
        Ok(true)
    }

    fn take_completion(&mut self, completion: Completion) {
        let (callee, response) = callbacks::outcome(completion);
        if let Some(export) = self.exports.get_mut(callee.export) {
            export.server.handle_callback_response(now(), callee.callback, response);
        }
    }

    /// Makes the changes of the burst durable, and sends the resulting messages.
    fn commit(&mut self) -> Result<(), ServeError> {
        // A response to a burst may leave together with others to the same host.
        for (number, export) in self.exports.iter_mut() {
            let server = &mut export.server;
            let (began, before) = (stations::stamp(), server.store().metrics().commits);
            server.poll(now()).map_err(|source| ServeError::Store { source })?;
            stations::commit(began, server.store().metrics().commits - before);
            let cork = self.endpoint.cork();
            while let Some(effect) = server.take_effect() {
                match effect {
                    ServerEffect::Respond { call, header, payload } => {
                        stations::respond(call);
                        self.requests.respond(call, header, payload);
                    }
                    ServerEffect::Call { callback, peer, message } => {
                        let callee = Callee { export: number, callback };
                        if !callbacks::call(&self.endpoint, callee, peer, message) {
                            server.handle_callback_response(now(), callback, None);
                        }
                    }
                }
            }
            drop(cork);
        }
        Ok(())
    }
}

/// An export, for people.
fn shown<S>(export: &Export<S>) -> String {
    match export.name.as_str() {
        "" => export.directory.clone(),
        name => format!("{name}={}", export.directory),
    }
}
