//! How does a message get from the thread that received it to the one that wants it?
//!
//! A message becomes visible only when it is complete, by being put into the queue under the core
//! lock. Then, under the same lock, exactly one waiter is told: the one that began to wait last, as
//! its caches are warm (row H-3). A queued message is *reserved* for it, so that a thread which comes
//! by does not snatch it away, and the waiter cannot find the queue empty.
//!
//! The kernel module hands an RPC to a thread before its packets are queued, and the thread could be
//! woken twice for one message (row H-7). Here that cannot happen: telling comes after queueing, and
//! nothing lies between them in which the lock is free.
//!
//! # Invariants
//!
//! - **H1** `reserved <= queue.len()`: whoever was told finds a message.
//! - **H2** A waiter that was told is not in `waiters` any more: it is told once.
//! - **H3** After [`Handoff::assign`] there is no waiter, or no message that is not reserved.

use super::token::ThreadToken;
use super::tracer::{Traced, handed_off};
use super::waiter::{Notice, Waiter};
use super::wake_list::WakeList;
use std::collections::VecDeque;
use std::sync::Arc;

/// A message, and the thread that received it from the network.
#[derive(Debug)]
pub(crate) struct From<T> {
    pub(crate) message: T,
    pub(crate) by: ThreadToken,
}

/// Messages of one kind and those who wait for them. Lives under the core lock.
#[derive(Debug)]
pub(crate) struct Handoff<T> {
    queue: VecDeque<From<T>>,
    /// Messages at the front of the queue that belong to waiters which have been told.
    reserved: usize,
    /// Those who wait, the newest last.
    waiters: Vec<Arc<Waiter>>,
}

impl<T> Default for Handoff<T> {
    fn default() -> Self {
        Self { queue: VecDeque::new(), reserved: 0, waiters: Vec::new() }
    }
}

impl<T: Traced> Handoff<T> {
    /// Makes a complete message visible.
    pub(crate) fn push(&mut self, message: T, by: ThreadToken) {
        self.queue.push_back(From { message, by });
    }

    /// Takes a message, for somebody who was not told that there is one for him.
    pub(crate) fn take(&mut self) -> Option<From<T>> {
        if self.queue.len() > self.reserved { self.queue.pop_front() } else { None }
    }

    /// Takes a message, for somebody who was told.
    ///
    /// # Panics
    ///
    /// If there is none (H1).
    pub(crate) fn take_reserved(&mut self) -> From<T> {
        debug_assert!(self.reserved > 0, "H1");
        self.reserved -= 1;
        match self.queue.pop_front() {
            Some(message) => message,
            None => unreachable!("H1: whoever was told finds a message"),
        }
    }

    /// Somebody who was told does not want the message after all.
    pub(crate) fn give_back(&mut self, wakes: &mut WakeList) {
        debug_assert!(self.reserved > 0, "H1");
        self.reserved -= 1;
        self.assign(wakes);
    }

    /// Adds a waiter.
    pub(crate) fn enlist(&mut self, waiter: Arc<Waiter>) {
        self.waiters.push(waiter);
    }

    /// Removes a waiter that was not told.
    pub(crate) fn delist(&mut self, waiter: &Arc<Waiter>) {
        self.waiters.retain(|other| !Arc::ptr_eq(other, waiter));
    }

    /// Tells as many waiters, newest first, as there are messages for them (H3); returns how many.
    pub(crate) fn assign(&mut self, wakes: &mut WakeList) -> u64 {
        let mut told = 0;
        while self.queue.len() > self.reserved {
            let Some(waiter) = self.waiters.pop() else { break };
            let name = waiter.name();
            if wakes.notify(waiter, Notice::Ready) {
                handed_off(self.queue[self.reserved].message.rpc(), name);
                self.reserved += 1;
                told += 1;
            }
        }
        told
    }

    /// Tells everybody: nothing will come any more. Whoever comes first takes what is left; those who
    /// were told before find out from the endpoint's state that it is closed.
    pub(crate) fn dismiss(&mut self, wakes: &mut WakeList) {
        self.reserved = 0;
        for waiter in self.waiters.drain(..) {
            wakes.notify(waiter, Notice::Ready);
        }
    }

    /// Messages that nobody has taken.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Removes all messages.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.reserved = 0;
        self.queue.drain(..).map(|from| from.message)
    }
}
