//! The servers of a name as a stream of changes, for tower's balancers.

use super::servers::Servers;
use crate::client::Channel;
use apus::tokio::Endpoint;
use futures_core::Stream;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::watch;
use tower::discover::Change;

/// A [`tower::discover::Discover`] over the servers of a name: a [`Channel`] for each new address,
/// and the address of each removed server. For [`tower`'s own
/// balancers](https://docs.rs/tower/latest/tower/balance); [`Balance`](crate::Balance) needs none.
///
/// It ends when the addresses will never change again, as in a list.
pub struct Discover {
    endpoint: Endpoint,
    servers: Servers,
    known: Vec<SocketAddr>,
    /// Changes not taken yet: removals first, so that no balancer has more servers than exist.
    changes: VecDeque<Change<SocketAddr, Channel>>,
    /// Ready when the addresses have changed; `None` if they never will.
    changed: Option<Changed>,
}

/// Waits for a change, and returns whether further changes are possible.
type Changed = Pin<Box<dyn Future<Output = (watch::Receiver<Vec<SocketAddr>>, bool)> + Send>>;

impl Discover {
    /// Returns the changes of `servers`, with channels that call through `endpoint`.
    #[must_use]
    pub fn new(endpoint: Endpoint, servers: Servers) -> Self {
        let changed = wait(servers.addresses.clone());
        let mut discover = Self {
            endpoint,
            servers,
            known: Vec::new(),
            changes: VecDeque::new(),
            changed: Some(changed),
        };
        discover.renew();
        discover
    }

    /// Compares the addresses with the known ones.
    fn renew(&mut self) {
        let found = self.servers.addresses();
        let gone = self.known.iter().filter(|address| !found.contains(address));
        self.changes.extend(gone.map(|address| Change::Remove(*address)));
        let new = found.iter().filter(|address| !self.known.contains(address));
        let channel = |address: &SocketAddr| Channel::new(self.endpoint.clone(), *address);
        self.changes.extend(new.map(|address| Change::Insert(*address, channel(address))));
        self.known = found;
    }
}

fn wait(mut addresses: watch::Receiver<Vec<SocketAddr>>) -> Changed {
    Box::pin(async move {
        let goes_on = addresses.changed().await.is_ok();
        (addresses, goes_on)
    })
}

impl Stream for Discover {
    type Item = Result<Change<SocketAddr, Channel>, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(change) = self.changes.pop_front() {
                return Poll::Ready(Some(Ok(change)));
            }
            let Some(changed) = &mut self.changed else { return Poll::Ready(None) };
            let (addresses, goes_on) = std::task::ready!(changed.as_mut().poll(cx));
            self.changed = goes_on.then(|| wait(addresses));
            self.renew();
        }
    }
}

impl std::fmt::Debug for Discover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Discover").field("known", &self.known).finish_non_exhaustive()
    }
}
