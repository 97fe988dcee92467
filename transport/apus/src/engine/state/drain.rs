//! Waiters for the acknowledgement of everything that was sent.

use crate::engine::handoff::{Notice, Waiter, WakeList};
use std::sync::Arc;

/// Threads and tasks that wait until every message has been acknowledged.
#[derive(Debug, Default)]
pub(crate) struct DrainWaiters {
    waiters: Vec<Arc<Waiter>>,
    /// Whether the endpoint was closed before everything had been acknowledged.
    gave_up: bool,
}

impl DrainWaiters {
    /// Returns whether no thread or task waits.
    pub(crate) const fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Adds a waiter.
    pub(crate) fn enlist(&mut self, waiter: Arc<Waiter>) {
        self.waiters.push(waiter);
    }

    /// Removes a waiter that was not notified.
    pub(crate) fn delist(&mut self, waiter: &Arc<Waiter>) {
        self.waiters.retain(|other| !Arc::ptr_eq(other, waiter));
    }

    /// Notifies all waiters.
    pub(crate) fn notify(&mut self, wakes: &mut WakeList) {
        for waiter in self.waiters.drain(..) {
            wakes.notify(waiter, Notice::Ready);
        }
    }

    /// Notes, when the endpoint is closed, whether messages will never be acknowledged.
    pub(crate) const fn set_gave_up(&mut self, gave_up: bool) {
        self.gave_up = gave_up;
    }

    /// Returns whether the endpoint was closed before everything had been acknowledged.
    pub(crate) const fn gave_up(&self) -> bool {
        self.gave_up
    }
}
