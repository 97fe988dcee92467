//! Which peers are reached through shared memory, and which over the network.
//!
//! The endpoint connects to a peer when it calls it for the first time, and again after a while if
//! that fails. It decides so under the core lock, and makes the connection when the lock is free
//! ([`Routes::take_connects`]).

use super::path::ConnectStart;
use apus_local::{Local, Pair, PeerName, PeerState};
use apus_proto::Instant;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The routes to all peers that were called.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// The route of the last call: most clients call one server at a time.
    last: Option<(SocketAddr, Last)>,
    known: HashMap<SocketAddr, Route>,
    to_connect: Vec<SocketAddr>,
}

#[derive(Clone, Debug)]
enum Last {
    Pair(Arc<Pair>),
    NetworkUntil(Instant),
}

#[derive(Debug)]
enum Route {
    Pair(Arc<Pair>),
    /// A connection will be started when the core lock is free.
    ToConnect,
    /// A connection was started to the endpoint with this name.
    Connecting {
        name: PeerName,
        since: Instant,
    },
    /// The network, and a connection is tried again at this time.
    NetworkUntil(Instant),
}

/// Time after which a failed connection is retried: the peer may have been started. Chosen by us:
/// an attempt without a peer takes 10 µs.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Time after which a connection is retried if the peer's queue was full. Chosen by us: any user
/// can fill it, and a server empties it in a millisecond.
const BUSY_INTERVAL: Duration = Duration::from_millis(10);

/// Time that a peer has to accept a connection. Chosen by us: a server accepts within 10 ms unless
/// it is stopped.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Number of peers that causes the table to be cleared. Chosen by us: the number of ports. Each
/// peer then costs a new connection.
const MAX_ROUTES: usize = 65_536;

impl Routes {
    /// Returns the pair for calls to `to`; `None` stands for the network. Schedules a connection if
    /// it is time.
    pub(super) fn pair(
        &mut self,
        to: SocketAddr,
        now: Instant,
        local: &Local,
    ) -> Option<&Arc<Pair>> {
        let is_fresh = match &self.last {
            Some((last, Last::Pair(_))) => *last == to,
            Some((last, Last::NetworkUntil(until))) => *last == to && now < *until,
            None => false,
        };
        if !is_fresh {
            self.last = self.resolve(to, now, local).map(|last| (to, last));
        }
        match &self.last {
            Some((_, Last::Pair(pair))) => Some(pair),
            _ => None,
        }
    }

    /// Returns the route to `to`, if it stays valid for a while.
    fn resolve(&mut self, to: SocketAddr, now: Instant, local: &Local) -> Option<Last> {
        let route = match self.known.get(&to) {
            Some(Route::Pair(pair)) => return Some(Last::Pair(pair.clone())),
            Some(Route::ToConnect) => return None,
            Some(Route::NetworkUntil(until)) if now < *until => {
                return Some(Last::NetworkUntil(*until));
            }
            Some(Route::Connecting { name, since }) => match local.peer_state(name) {
                PeerState::Pair(pair) => Route::Pair(pair),
                PeerState::Connecting if now - *since < CONNECT_TIMEOUT => return None,
                PeerState::Connecting => {
                    local.cancel_connect(name);
                    Route::NetworkUntil(now + RETRY_INTERVAL)
                }
                // The peer has refused.
                _ => Route::NetworkUntil(now + RETRY_INTERVAL),
            },
            Some(Route::NetworkUntil(_)) | None => {
                self.to_connect.push(to);
                Route::ToConnect
            }
        };
        let last = match &route {
            Route::Pair(pair) => Some(Last::Pair(pair.clone())),
            Route::NetworkUntil(until) => Some(Last::NetworkUntil(*until)),
            Route::ToConnect | Route::Connecting { .. } => None,
        };
        if self.known.len() >= MAX_ROUTES {
            self.known.clear();
        }
        self.known.insert(to, route);
        last
    }

    /// Returns whether there are addresses to connect to.
    pub(crate) const fn has_connects(&self) -> bool {
        !self.to_connect.is_empty()
    }

    /// Returns the addresses to connect to, if there are any; once.
    pub(crate) fn take_connects(&mut self) -> Option<Vec<SocketAddr>> {
        (!self.to_connect.is_empty()).then(|| std::mem::take(&mut self.to_connect))
    }

    /// Records the start of a connection to `to`.
    pub(crate) fn connecting(&mut self, to: SocketAddr, start: ConnectStart, now: Instant) {
        let route = match start {
            ConnectStart::Started(name) => Route::Connecting { name, since: now },
            ConnectStart::Busy => Route::NetworkUntil(now + BUSY_INTERVAL),
            ConnectStart::Absent | ConnectStart::Impostor => {
                Route::NetworkUntil(now + RETRY_INTERVAL)
            }
        };
        self.known.insert(to, route);
    }

    /// Forgets a pair that has ended. The next call connects again: the server may have been
    /// restarted. Returns the server's address.
    pub(super) fn forget(&mut self, number: u64) -> Option<SocketAddr> {
        self.last = None;
        let is_it = |route: &Route| matches!(route, Route::Pair(pair) if pair.number() == number);
        let mut address = None;
        // A server that is bound to all addresses of the host may have several addresses.
        self.known.retain(|to, route| {
            let ended = is_it(route);
            address = address.or(ended.then_some(*to));
            !ended
        });
        address
    }

    /// Forgets all routes.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
