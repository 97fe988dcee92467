//! Who is reached through memory, and who over the network?
//!
//! Peers are greeted when they are called for the first time, and again after a while if that came to nothing. What
//! is to be greeted is decided under the core lock, and done when the lock is free ([`Routes::take_connects`]).

use apus_local::{Local, Pair, PeerName, PeerState};
use apus_proto::Instant;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The ways to all peers that were called. Lives under the core lock.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// That of the last call: most callers talk to one server at a time.
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
    /// It is about to be greeted.
    ToConnect,
    /// It was greeted under this name.
    Connecting {
        name: PeerName,
        since: Instant,
    },
    /// It is greeted again when this time has come.
    NetworkUntil(Instant),
}

/// Nanoseconds after which a peer that was not reached is greeted again: it may have been started. Ours: greeting nobody
/// takes 10 µs.
const AGAIN: Duration = Duration::from_secs(1);

/// Nanoseconds for which the answer to a greeting is waited for. Ours: a server answers within 10 ms, unless it is
/// stopped.
const PATIENCE: Duration = Duration::from_secs(1);

/// Peers that are known at most. Ours: as many as there are ports; then the table starts anew, which costs a greeting
/// each.
const MAX_ROUTES: usize = 65_536;

impl Routes {
    /// The pair through which calls to `to` go; `None`: over the network. The peer is greeted if it is time.
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

    /// What is known of `to`, if it stays as it is for a while.
    fn resolve(&mut self, to: SocketAddr, now: Instant, local: &Local) -> Option<Last> {
        let route = match self.known.get(&to) {
            Some(Route::Pair(pair)) => return Some(Last::Pair(pair.clone())),
            Some(Route::ToConnect) => return None,
            Some(Route::NetworkUntil(until)) if now < *until => {
                return Some(Last::NetworkUntil(*until));
            }
            Some(Route::Connecting { name, since }) => match local.peer_state(name) {
                PeerState::Pair(pair) => Route::Pair(pair),
                PeerState::Connecting if now - *since < PATIENCE => return None,
                PeerState::Connecting => {
                    local.cancel_connect(name);
                    Route::NetworkUntil(now + AGAIN)
                }
                // It has refused.
                _ => Route::NetworkUntil(now + AGAIN),
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

    /// Who is to be greeted, if anybody is; once.
    pub(crate) fn take_connects(&mut self) -> Option<Vec<SocketAddr>> {
        (!self.to_connect.is_empty()).then(|| std::mem::take(&mut self.to_connect))
    }

    /// `to` was greeted under this name, or could not be.
    pub(crate) fn connecting(&mut self, to: SocketAddr, name: Option<PeerName>, now: Instant) {
        let route = match name {
            Some(name) => Route::Connecting { name, since: now },
            None => Route::NetworkUntil(now + AGAIN),
        };
        self.known.insert(to, route);
    }

    /// A pair has ended. Its server is greeted again with the next call: it may have been started anew. Returns the
    /// server's address.
    pub(super) fn forget(&mut self, number: u64) -> Option<SocketAddr> {
        self.last = None;
        let is_it = |route: &Route| matches!(route, Route::Pair(pair) if pair.number() == number);
        let mut address = None;
        // A server that listens on all addresses of the host may have been called by several.
        self.known.retain(|to, route| {
            let ended = is_it(route);
            address = address.or(ended.then_some(*to));
            !ended
        });
        address
    }

    /// All pairs are let go.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
