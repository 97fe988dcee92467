//! The balancer: a service that sends each call to one of several servers.

use super::members::Members;
use super::servers::Servers;
use crate::code::Code;
use crate::handler::BoxFuture;
use crate::message::{Request, Response};
use crate::status::Status;
use apus::tokio::Endpoint;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tower_service::Service;

/// Sends each call to one of the servers of a service: of two drawn at random, to the one whose outstanding calls take less time by
/// its measured round trip.
///
/// A server that refuses calls because it drains, ends or is not ready, or that fails three times in a row without a trace of
/// execution, is ejected. It is asked for its [`Health`](crate::Health) and gets calls again when it is ready. If all are ejected, calls are sent
/// nevertheless: a wrong suspicion must not take the service away.
///
/// A clone is cheap, and shares what is known about the servers.
#[derive(Clone, Debug)]
pub struct Balance {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    endpoint: Endpoint,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    servers: Servers,
    members: Arc<Members>,
}

impl Balance {
    /// Returns a balancer over servers, which calls them through `endpoint`.
    #[must_use]
    pub fn new(endpoint: Endpoint, servers: Servers) -> Self {
        let members = Members::default().renewed(&endpoint, &servers.addresses());
        let state = Mutex::new(State { servers, members: Arc::new(members) });
        Self { shared: Arc::new(Shared { endpoint, state }) }
    }

    /// Returns the number of servers, and the number of those that are not ejected.
    #[must_use]
    pub fn servers(&self) -> (usize, usize) {
        let members = self.members();
        (members.len(), members.available())
    }

    /// Returns the members, renewed if the addresses have changed.
    fn members(&self) -> Arc<Members> {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        // An error says that the addresses never change again.
        if state.servers.addresses.has_changed().unwrap_or(false) {
            let addresses = state.servers.addresses.borrow_and_update().clone();
            state.members = Arc::new(state.members.renewed(&self.shared.endpoint, &addresses));
        }
        state.members.clone()
    }
}

impl Service<Request> for Balance {
    type Response = Response;
    type Error = Status;
    type Future = BoxFuture<Result<Response, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let members = self.members();
        let Some(server) = members.choose(request.attempts(), request.is_only_elsewhere()) else {
            let message = match members.len() {
                0 => "the service has no servers",
                _ => "there is no other server for a further attempt",
            };
            let status = Status::not_executed(Code::Unavailable, message);
            return Box::pin(std::future::ready(Err(status)));
        };
        if let Some(attempts) = request.attempts() {
            attempts.add(server.address());
        }
        Box::pin(server.call(request))
    }
}
