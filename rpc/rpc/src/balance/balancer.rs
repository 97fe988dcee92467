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

/// Sends each call to one of the servers of a service: draws two at random, and picks the one whose
/// outstanding calls take less time by its measured round trip.
///
/// A server is ejected if it refuses calls because it drains, ends or is not ready, or if three
/// calls in a row fail without a sign of execution. The balancer polls its
/// [`Health`](crate::Health), and sends calls again when it is ready. If all servers are ejected,
/// calls are sent nevertheless: a wrong suspicion must not make the service unavailable.
///
/// Clones are cheap, and share the state of the servers.
#[derive(Clone, Debug)]
pub struct Balance {
    shared: Arc<SharedBalance>,
}

#[derive(Debug)]
struct SharedBalance {
    endpoint: Endpoint,
    state: Mutex<MemberState>,
}

#[derive(Debug)]
struct MemberState {
    servers: Servers,
    members: Arc<Members>,
}

impl Balance {
    /// Creates a balancer over servers that are called through `endpoint`.
    #[must_use]
    pub fn new(endpoint: Endpoint, servers: Servers) -> Self {
        let members = Members::default().renewed(&endpoint, &servers.addresses());
        let state = Mutex::new(MemberState { servers, members: Arc::new(members) });
        Self { shared: Arc::new(SharedBalance { endpoint, state }) }
    }

    /// Returns the number of servers, and the number of servers that are not ejected.
    #[must_use]
    pub fn servers(&self) -> (usize, usize) {
        let members = self.members();
        (members.len(), members.available())
    }

    /// Returns the members, updated if the addresses have changed.
    fn members(&self) -> Arc<Members> {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        // An error means that the addresses never change again.
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
