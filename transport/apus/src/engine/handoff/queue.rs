//! The handoff of a message from the leader, which received it, to the thread that waits for it.
//!
//! A message becomes visible only when it is complete, by being queued under the core lock. Then,
//! under the same lock, exactly one waiter is notified: the one that started to wait last, as its
//! caches are warm (HM `homa_interest.c` `homa_choose_interest`). The message is *reserved* for
//! that waiter, so that no other thread takes it first.
//!
//! The kernel module hands an RPC to a thread before its packets are queued, and may wake the
//! thread twice for one message (docs/reference/papers.md, *Double handoff*). That cannot happen
//! here: the notification follows the queueing, and the lock is not released in between.
//!
//! # Invariants
//!
//! - **HANDOFF-1** `reserved <= queue.len()`: a notified waiter finds a message.
//! - **HANDOFF-2** A notified waiter is not in `waiters` any more: it is notified once.
//! - **HANDOFF-3** After [`Handoff::assign`] there is no waiter, or no message that is not
//!   reserved.

use super::token::ThreadToken;
use super::waiter::{Notice, Waiter};
use super::wake_list::WakeList;
use crate::engine::tracer::{Traced, record_handoff};
use std::collections::VecDeque;
use std::sync::Arc;

/// A message, and the thread that received it from the network.
#[derive(Debug)]
pub(crate) struct Delivered<T> {
    pub(crate) message: T,
    pub(crate) by: ThreadToken,
}

impl<T> Delivered<T> {
    /// Converts the message.
    pub(crate) fn map<U>(self, convert: impl FnOnce(T) -> U) -> Delivered<U> {
        Delivered { message: convert(self.message), by: self.by }
    }
}

/// Thread that was asked to steal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StealRequest {
    /// A waiter other than the leader.
    Waiter,
    /// The leader.
    Leader,
    /// None.
    None,
}

/// Messages of one kind, and the waiters for them. Lives under the core lock.
#[derive(Debug)]
pub(crate) struct Handoff<T> {
    queue: VecDeque<Delivered<T>>,
    /// Number of messages at the front of the queue that belong to notified waiters.
    reserved: usize,
    /// The newest last.
    waiters: Vec<Arc<Waiter>>,
    /// Whether the leader waits for a message.
    leader_waits: bool,
    /// Whether the leader, or the next waiting thread, is asked to steal from other shards.
    steal_requested: bool,
}

impl<T> Default for Handoff<T> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            reserved: 0,
            waiters: Vec::new(),
            leader_waits: false,
            steal_requested: false,
        }
    }
}

impl<T: Traced> Handoff<T> {
    /// Makes a complete message visible.
    pub(crate) fn push(&mut self, message: T, by: ThreadToken) {
        self.queue.push_back(Delivered { message, by });
    }

    /// Makes a complete message visible, before those whose key is larger; but behind the reserved
    /// ones, which stay first (HANDOFF-1).
    pub(crate) fn push_by_key(&mut self, message: T, by: ThreadToken, key: impl Fn(&T) -> u64) {
        let place = self.queue.partition_point(|other| key(&other.message) <= key(&message));
        self.queue.insert(place.max(self.reserved), Delivered { message, by });
    }

    /// The messages that no notified waiter will take.
    pub(crate) fn unreserved_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.queue.iter_mut().skip(self.reserved).map(|from| &mut from.message)
    }

    /// Sorts the messages that no notified waiter will take; equal keys stay in order.
    pub(crate) fn sort_unreserved_by_key(&mut self, key: impl Fn(&T) -> u64) {
        let reserved = self.reserved;
        self.queue.make_contiguous()[reserved..].sort_by_key(|from| key(&from.message));
    }

    /// Takes a message for a thread that was not notified.
    pub(crate) fn take(&mut self) -> Option<Delivered<T>> {
        if self.queue.len() > self.reserved { self.queue.pop_front() } else { None }
    }

    /// Takes a message for a notified thread.
    ///
    /// # Panics
    ///
    /// If there is none (HANDOFF-1).
    pub(crate) fn take_reserved(&mut self) -> Delivered<T> {
        debug_assert!(self.reserved > 0, "HANDOFF-1");
        self.reserved -= 1;
        match self.queue.pop_front() {
            Some(message) => message,
            None => unreachable!("HANDOFF-1: a notified waiter finds a message"),
        }
    }

    /// Gives a reserved message to another waiter: the notified one does not want it any more.
    pub(crate) fn give_back(&mut self, wakes: &mut WakeList) {
        debug_assert!(self.reserved > 0, "HANDOFF-1");
        self.reserved -= 1;
        self.assign(wakes);
    }

    /// Adds a waiter.
    pub(crate) fn enlist(&mut self, waiter: Arc<Waiter>) {
        self.waiters.push(waiter);
    }

    /// Removes a waiter that was not notified.
    pub(crate) fn delist(&mut self, waiter: &Arc<Waiter>) {
        self.waiters.retain(|other| !Arc::ptr_eq(other, waiter));
    }

    /// Notifies one waiter per message, the newest first (HANDOFF-3). Returns the number of
    /// notified waiters.
    pub(crate) fn assign(&mut self, wakes: &mut WakeList) -> u64 {
        let mut notified = 0;
        while self.queue.len() > self.reserved {
            let Some(waiter) = self.waiters.pop() else { break };
            let name = waiter.name();
            if wakes.notify(waiter, Notice::Ready) {
                record_handoff(self.queue[self.reserved].message.rpc(), name);
                self.reserved += 1;
                notified += 1;
            }
        }
        notified
    }

    /// Returns the number of messages that no notified waiter will take.
    pub(crate) fn unreserved(&self) -> usize {
        self.queue.len() - self.reserved
    }

    /// Notes whether the leader waits for a message.
    pub(crate) const fn set_leader_waits(&mut self, waits: bool) {
        self.leader_waits = waits;
    }

    /// Asks a waiter, or else the leader, to steal from other shards. If there is neither, or the
    /// leader is asked already, the next thread that waits is asked.
    pub(crate) fn request_steal(&mut self, wakes: &mut WakeList) -> StealRequest {
        while let Some(waiter) = self.waiters.pop() {
            if wakes.notify(waiter, Notice::Steal) {
                return StealRequest::Waiter;
            }
        }
        let is_new = !std::mem::replace(&mut self.steal_requested, true);
        if self.leader_waits && is_new { StealRequest::Leader } else { StealRequest::None }
    }

    /// Returns whether a waiting thread is asked to steal from other shards.
    pub(crate) const fn is_steal_requested(&self) -> bool {
        self.steal_requested
    }

    /// Takes the request to steal from other shards, if there is one.
    pub(crate) const fn take_steal_request(&mut self) -> bool {
        std::mem::replace(&mut self.steal_requested, false)
    }

    /// Notifies all waiters that no more messages will arrive. Any of them may take the remaining
    /// ones. Waiters that were notified before see in the endpoint's state that it is closed.
    pub(crate) fn dismiss(&mut self, wakes: &mut WakeList) {
        self.reserved = 0;
        for waiter in self.waiters.drain(..) {
            wakes.notify(waiter, Notice::Ready);
        }
    }

    /// Returns the number of messages that were not taken.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Removes all messages.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.reserved = 0;
        self.queue.drain(..).map(|from| from.message)
    }
}
