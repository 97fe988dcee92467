//! The receive path of the lab: from the receiving thread to a waiting thread, with the flaw and
//! without.
//!
//! It follows the kernel module's `homa_dispatch_pkts` and `homa_wait_shared` to reproduce their
//! failure; apus works differently.
//!
//! # Invariants
//!
//! - **DISPATCH-1** A message is claimed from its handoff to a thread until that thread has taken
//!   it, or has found its packet missing. No other thread takes it in this time.
//! - **DISPATCH-2** A thread that was notified is not in `waiting`.

use serde::{Deserialize, Serialize};

use super::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering};

/// The order of steps for an arrived packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Notify a thread of the message, release the lock for acks, then queue the packet: the flaw.
    PublishFirst,
    /// Handle acks, queue the packet, then notify a thread.
    EnqueueFirst,
}

/// Identifies a message.
pub(super) type Id = u64;

/// The counters of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    /// Messages that receivers have taken.
    pub(super) messages: u64,
    /// Notifications of a thread that a message is available.
    pub(super) handoffs: u64,
    /// Notifications whose message was missing.
    pub(super) spurious: u64,
    /// Number of times that the background poller polled instead of the receivers; only apus has
    /// one.
    pub(super) keeper_turns: u64,
}

/// Messages, and the threads that wait for messages.
pub(super) struct Socket {
    order: Order,
    state: Mutex<SocketState>,
    receivers: Vec<Receiver>,
}

struct Receiver {
    /// Whether the receiver has been notified; it polls this while it spins.
    notified: AtomicBool,
    wake: Condvar,
}

#[derive(Default)]
struct SocketState {
    /// Messages whose packet is queued.
    queued: Vec<Id>,
    /// Messages that belong to a thread (DISPATCH-1).
    claimed: Vec<Id>,
    /// The notification of each receiver.
    notified: Vec<Option<Id>>,
    /// Waiting receivers, the newest last.
    waiting: Vec<usize>,
    closed: bool,
    counts: Counts,
}

impl Socket {
    /// Returns a socket with `receivers` receivers.
    pub(super) fn new(order: Order, receivers: usize) -> Self {
        let state = SocketState { notified: vec![None; receivers], ..SocketState::default() };
        let receiver = |_| Receiver { notified: AtomicBool::new(false), wake: Condvar::new() };
        Self { order, state: Mutex::new(state), receivers: (0..receivers).map(receiver).collect() }
    }

    /// Handles a packet that contains all of message `id`, and acks. `handle_acks` takes other
    /// locks, so the lock of the socket must be free while it runs.
    pub(super) fn deliver(&self, id: Id, handle_acks: impl FnOnce()) {
        if self.order == Order::PublishFirst {
            self.hand_over(&mut self.lock(), id);
            // The window: the message is announced, and its packet is not queued.
            handle_acks();
        } else {
            handle_acks();
        }
        let mut state = self.lock();
        state.queued.push(id);
        if !state.claimed.contains(&id) {
            self.hand_over(&mut state, id);
        }
    }

    /// Waits for a message: spins until `spin` returns, then sleeps. Returns `None` if the socket
    /// is closed. `receiver` is the thread's number.
    pub(super) fn receive(&self, receiver: usize, spin: &dyn Fn(&dyn Fn() -> bool)) -> Option<Id> {
        let mut state = self.lock();
        loop {
            if let Some(id) = state.take_any() {
                return Some(id);
            }
            if state.closed {
                return None;
            }
            state.waiting.push(receiver);
            drop(state);
            let Receiver { notified, wake } = &self.receivers[receiver];
            spin(&|| notified.load(Ordering::Acquire));
            state = self.lock();
            while state.notified[receiver].is_none() && !state.closed {
                state = wake.wait(state).expect("no thread panics under the lock");
            }
            notified.store(false, Ordering::Relaxed);
            let Some(id) = state.notified[receiver].take() else {
                state.waiting.retain(|each| *each != receiver);
                continue;
            };
            state.claimed.retain(|each| *each != id);
            if state.take(id) {
                return Some(id);
            }
            state.counts.spurious += 1;
        }
    }

    /// Closes the socket: no message will arrive, and receivers return.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        for Receiver { notified, wake } in &self.receivers {
            notified.store(true, Ordering::Release);
            wake.notify_all();
        }
    }

    /// Returns whether a receiver waits.
    pub(super) fn is_awaited(&self) -> bool {
        !self.lock().waiting.is_empty()
    }

    /// Returns the counters.
    pub(super) fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// Notifies the thread that started to wait last that the message is available.
    fn hand_over(&self, state: &mut SocketState, id: Id) {
        let Some(receiver) = state.waiting.pop() else { return };
        state.counts.handoffs += 1;
        state.claimed.push(id);
        state.notified[receiver] = Some(id);
        let Receiver { notified, wake } = &self.receivers[receiver];
        notified.store(true, Ordering::Release);
        wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, SocketState> {
        self.state.lock().expect("no thread panics under the lock")
    }
}

impl SocketState {
    /// Takes the oldest message that no thread has claimed.
    fn take_any(&mut self) -> Option<Id> {
        let id = *self.queued.iter().find(|id| !self.claimed.contains(id))?;
        self.take(id).then_some(id)
    }

    /// Takes this message, if its packet is queued.
    fn take(&mut self, id: Id) -> bool {
        let Some(index) = self.queued.iter().position(|each| *each == id) else { return false };
        self.queued.remove(index);
        self.counts.messages += 1;
        true
    }
}

#[cfg(test)]
#[cfg(not(apus_loom))]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    /// Does not spin.
    fn at_once(_: &dyn Fn() -> bool) {}

    /// The acks are handled until the notified thread has checked for the message.
    #[test]
    fn a_check_while_acks_are_handled_costs_a_second_notification_only_with_the_flaw() {
        for (order, handoffs) in [(Order::PublishFirst, 2), (Order::EnqueueFirst, 1)] {
            let socket = Socket::new(order, 1);
            let (taken, takes) = mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(|| {
                    while let Some(id) = socket.receive(0, &at_once) {
                        taken.send(id).unwrap();
                    }
                });
                while !socket.is_awaited() {
                    thread::yield_now();
                }
                socket.deliver(7, || {
                    while order == Order::PublishFirst && socket.counts().spurious == 0 {
                        thread::yield_now();
                    }
                });
                assert_eq!(takes.recv().unwrap(), 7);
                socket.close();
            });
            let expected =
                Counts { messages: 1, handoffs, spurious: handoffs - 1, keeper_turns: 0 };
            assert_eq!(socket.counts(), expected, "{order:?}");
        }
    }

    #[test]
    fn a_message_without_a_waiter_is_found_by_the_next_receiver() {
        let socket = Socket::new(Order::PublishFirst, 1);
        socket.deliver(1, || ());
        assert_eq!(socket.receive(0, &at_once), Some(1));
        assert_eq!(socket.counts().handoffs, 0);
        socket.close();
        assert_eq!(socket.receive(0, &at_once), None);
    }
}
