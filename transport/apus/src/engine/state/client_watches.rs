//! Clients that the application watches: whether they still wait for a reply.
//!
//! Only watched requests cost anything: over the network their clients are asked (RPC-20).

use super::message::Origin;
use apus_proto::RpcKey;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

/// Whether a watched client has gone, and the task to wake then.
#[derive(Debug, Default)]
pub(crate) struct ClientState {
    gone: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl ClientState {
    /// Returns the state of a client that has gone.
    pub(crate) fn gone() -> Arc<Self> {
        let state = Arc::<Self>::default();
        state.set_gone();
        state
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Returns whether the client has gone; if it has not, the task is woken when it has.
    pub(crate) fn poll_gone(&self, cx: &Context<'_>) -> Poll<()> {
        let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_gone() {
            return Poll::Ready(());
        }
        *waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn set_gone(&self) {
        let waker = {
            let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
            self.gone.store(true, Ordering::Release);
            waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Watched {
    /// The client of a request over the network.
    Network(RpcKey),
    /// The client of a request through shared memory: the number of the pair, and the request's id.
    Local(u64, u64),
    /// The process at the other end of the pair with this number.
    Pair(u64),
}

impl From<Origin> for Watched {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::Network(rpc) => Self::Network(rpc),
            Origin::Local(pair, id) => Self::Local(pair, id),
        }
    }
}

/// The watched clients.
#[derive(Debug, Default)]
pub(crate) struct ClientWatches {
    states: HashMap<Watched, Vec<Weak<ClientState>>>,
}

impl ClientWatches {
    /// Watches the client of a request; `is_gone` states that it does not wait any more.
    pub(crate) fn watch_request(&mut self, origin: Origin, is_gone: bool) -> Arc<ClientState> {
        self.watch(origin.into(), is_gone)
    }

    /// Watches the process at the other end of a pair; `is_gone` states that it has ended.
    pub(crate) fn watch_pair(&mut self, pair: u64, is_gone: bool) -> Arc<ClientState> {
        self.watch(Watched::Pair(pair), is_gone)
    }

    fn watch(&mut self, watched: Watched, is_gone: bool) -> Arc<ClientState> {
        if is_gone {
            return ClientState::gone();
        }
        let state = Arc::<ClientState>::default();
        let states = self.states.entry(watched).or_default();
        if states.len().is_power_of_two() {
            states.retain(|state| state.strong_count() > 0);
        }
        states.push(Arc::downgrade(&state));
        state
    }

    /// A request is answered or dropped.
    #[inline]
    pub(crate) fn forget(&mut self, origin: Origin) {
        if !self.states.is_empty() {
            self.states.remove(&origin.into());
        }
    }

    /// The client of a request has gone, or has cancelled the call.
    pub(crate) fn request_ended(&mut self, origin: Origin) {
        self.end(origin.into());
    }

    /// A pair has ended, and with it all requests of its client.
    pub(crate) fn pair_ended(&mut self, pair: u64) {
        self.end_where(
            |watched| matches!(watched, Watched::Pair(of) | Watched::Local(of, _) if *of == pair),
        );
    }

    /// The endpoint is closed.
    pub(crate) fn end_all(&mut self) {
        self.end_where(|_| true);
    }

    fn end_where(&mut self, is_over: impl Fn(&Watched) -> bool) {
        let ended: Vec<Watched> = self.states.keys().copied().filter(is_over).collect();
        for watched in ended {
            self.end(watched);
        }
    }

    fn end(&mut self, watched: Watched) {
        for state in self.states.remove(&watched).into_iter().flatten() {
            if let Some(state) = state.upgrade() {
                state.set_gone();
            }
        }
    }
}
