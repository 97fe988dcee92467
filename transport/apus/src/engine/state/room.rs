//! Waiters for room to send.

use super::polling::Polling;
use crate::engine::handoff::{Notice, Waiter, WakeList};
use std::sync::Arc;

/// Threads and tasks that wait for room after a command was rejected for lack of it.
#[derive(Debug, Default)]
pub(crate) struct RoomWaiters {
    waiters: Vec<Arc<Waiter>>,
    /// Number of times that there was room.
    changes: u64,
    /// Whether a call was rejected because the endpoint has too many.
    too_many_calls: bool,
}

impl RoomWaiters {
    /// Returns the number of times that there was room after a command was rejected for lack of it.
    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Adds a waiter.
    pub(crate) fn enlist(&mut self, waiter: Arc<Waiter>) {
        self.waiters.push(waiter);
    }

    /// Removes a waiter that was not notified.
    pub(crate) fn delist(&mut self, waiter: &Arc<Waiter>) {
        self.waiters.retain(|other| !Arc::ptr_eq(other, waiter));
    }

    /// Notifies all waiters: each repeats its command.
    pub(crate) fn notify(&mut self, polling: &mut Polling, wakes: &mut WakeList) {
        self.changes += 1;
        // The leader may wait for room, too, and is not among the waiters.
        polling.request_check();
        for waiter in self.waiters.drain(..) {
            wakes.notify(waiter, Notice::Ready);
        }
    }

    /// Notes that a call was rejected because the endpoint has too many, including those whose
    /// completion has not been received.
    pub(crate) const fn want_fewer_calls(&mut self) {
        self.too_many_calls = true;
    }

    /// Notes that there is one call less: its completion was received, or it was cancelled.
    pub(crate) fn call_ended(&mut self, polling: &mut Polling, wakes: &mut WakeList) {
        if std::mem::take(&mut self.too_many_calls) {
            self.notify(polling, wakes);
        }
    }
}
