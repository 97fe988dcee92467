//! Model checks of the poll role and the handoff.
//!
//! loom runs every interleaving of a small model that consists of the real [`Handoff`],
//! [`PollRole`], [`Waiter`] and [`WakeList`] under one lock, with a queue instead of the network.
//! Run with
//!
//! ```sh
//! RUSTFLAGS="--cfg apus_loom" cargo test --release -p apus --lib model
//! ```
//!
//! It checks ENGINE-1 to ENGINE-3: one thread at a time polls, no thread waits forever (loom
//! reports a deadlock), and a notified thread finds its message. With two shards it checks STEAL-1:
//! no thread sleeps while the other shard has a surplus.

use super::poll_role::PollRole;
use super::queue::Handoff;
use super::siblings::{MessageKind, Sibling, Siblings};
use super::token::ThreadToken;
use super::waiter::{Notice, Waiter};
use super::wake_list::WakeList;
use crate::engine::waiting::Spin;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Mutex, MutexGuard};
use loom::thread;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

impl crate::engine::tracer::Traced for usize {
    fn rpc(&self) -> Option<apus_trace::Rpc> {
        None
    }
}

/// The state under the core lock.
#[derive(Default)]
struct LockedState {
    requests: Handoff<usize>,
    role: PollRole,
    wakes: WakeList,
    handoffs: u64,
}

struct Model {
    state: Mutex<LockedState>,
    /// Messages on the wire.
    network: Mutex<VecDeque<usize>>,
    /// Threads that poll the network at this moment.
    polling: AtomicUsize,
}

impl Model {
    fn new(messages: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(LockedState::default()),
            network: Mutex::new((0..messages).collect()),
            polling: AtomicUsize::new(0),
        })
    }

    /// Unlocks, and then wakes notified waiters, as `Locked` does.
    fn release(&self, mut state: MutexGuard<'_, LockedState>) {
        let wakes = state.wakes.take();
        drop(state);
        if let Some(wakes) = wakes {
            wakes.wake();
        }
    }

    /// One pass of the loop: the first message on the wire, if there is one, becomes visible.
    fn pass(&self) -> MutexGuard<'_, LockedState> {
        assert_eq!(self.polling.fetch_add(1, Ordering::SeqCst), 0, "ENGINE-1: two threads poll");
        let arrived = self.network.lock().unwrap().pop_front();
        let mut state = self.state.lock().unwrap();
        if let Some(message) = arrived {
            state.requests.push(message, ThreadToken::current());
        }
        self.polling.fetch_sub(1, Ordering::SeqCst);
        state
    }

    /// A pass of a dedicated engine, which waits for no message itself.
    fn serve(&self) {
        let mut state = self.pass();
        Self::assign(&mut state);
        self.release(state);
    }

    fn assign(state: &mut LockedState) {
        let LockedState { requests, wakes, handoffs, .. } = state;
        *handoffs += requests.assign(wakes);
    }

    /// The loop of `Shard::run_loop`, for one message.
    fn run_loop(&self) -> usize {
        loop {
            let mut state = self.pass();
            let message = state.requests.take();
            Self::assign(&mut state);
            if let Some(message) = message {
                let LockedState { role, wakes, .. } = &mut *state;
                role.pass(wakes);
                self.release(state);
                return message.message;
            }
            self.release(state);
            thread::yield_now();
        }
    }

    /// `Shard::wait_for`, for one message.
    fn recv(&self) -> usize {
        let mut state = self.state.lock().unwrap();
        if let Some(message) = state.requests.take() {
            return message.message;
        }
        if state.role.take() {
            drop(state);
            return self.run_loop();
        }
        let waiter = Arc::new(Waiter::thread());
        state.requests.enlist(waiter.clone());
        state.role.add_follower(waiter.clone());
        self.release(state);
        let waited = waiter.wait(Spin::new(Some(Duration::ZERO)), None);
        assert_eq!(waited.spurious, 0, "ENGINE-3: woken needlessly");
        let mut state = self.state.lock().unwrap();
        match waiter.notice() {
            Some(Notice::Ready) => {
                state.role.remove_follower(&waiter);
                state.requests.take_reserved().message
            }
            Some(Notice::PollRole) => {
                state.requests.delist(&waiter);
                drop(state);
                self.run_loop()
            }
            Some(Notice::Steal) => panic!("there is one shard"),
            None => panic!("ENGINE-3: woken without a notice"),
        }
    }
}

/// A dedicated engine and receivers that only wait: every message is handed off exactly once.
#[test]
fn model_a_dedicated_engine_hands_each_message_over_once() {
    loom::model(|| {
        let model = Model::new(2);
        assert!(model.state.lock().unwrap().role.take());
        let receivers: Vec<_> = (0..2)
            .map(|_| {
                let model = model.clone();
                thread::spawn(move || model.recv())
            })
            .collect();
        // The third pass receives no message, and must not notify a waiter.
        for _ in 0..3 {
            model.serve();
        }
        let mut got: Vec<usize> =
            receivers.into_iter().map(|receiver| receiver.join().unwrap()).collect();
        got.sort_unstable();
        assert_eq!(got, [0, 1]);
        // A message that was there before its receiver needs no handoff.
        assert!(model.state.lock().unwrap().handoffs <= 2, "handed off twice");
    });
}

/// Receivers that poll themselves and pass the poll role on: every receiver gets a message, and
/// none is taken twice.
#[test]
fn model_waiters_pass_the_poll_role_on() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let model = Model::new(2);
        let other = {
            let model = model.clone();
            thread::spawn(move || model.recv())
        };
        let mut got = [model.recv(), other.join().unwrap()];
        got.sort_unstable();
        assert_eq!(got, [0, 1]);
        assert!(model.state.lock().unwrap().role.is_free(), "ROLE-1: the role was freed");
    });
}

/// A token left behind by one wait would end the next one needlessly (WAITER-2).
#[test]
fn model_one_receiver_waits_twice() {
    loom::model(|| {
        let model = Model::new(2);
        assert!(model.state.lock().unwrap().role.take());
        let receiver = {
            let model = model.clone();
            thread::spawn(move || model.recv() + model.recv())
        };
        for _ in 0..2 {
            model.serve();
        }
        assert_eq!(receiver.join().unwrap(), 1, "0 and 1");
    });
}

/// A message that arrives while a receiver is about to sleep is not missed.
#[test]
fn model_a_message_that_comes_in_the_last_moment_is_not_missed() {
    loom::model(|| {
        let model = Model::new(1);
        assert!(model.state.lock().unwrap().role.take());
        let receiver = {
            let model = model.clone();
            thread::spawn(move || model.recv())
        };
        // The first pass may be too early for the message, not for the receiver.
        for _ in 0..2 {
            model.serve();
        }
        assert_eq!(receiver.join().unwrap(), 0);
    });
}

/// Two shards without a network: messages are pushed into their inboxes.
struct TwoShards {
    states: [Mutex<LockedState>; 2],
    siblings: Arc<Siblings<()>>,
}

const KINDS: &[MessageKind] = &[MessageKind::Request];

impl TwoShards {
    fn new() -> Arc<Self> {
        Arc::new(Self { states: Default::default(), siblings: Siblings::new(2) })
    }

    fn place(&self, index: usize) -> Sibling<()> {
        self.siblings.place(index)
    }

    /// Unlocks, wakes, publishes the surplus and asks the other shard, as `Locked` does.
    fn release(&self, index: usize, mut state: MutexGuard<'_, LockedState>) {
        let wakes = state.wakes.take();
        let surplus = state.requests.unreserved();
        let more = self.place(index).publish_surplus(MessageKind::Request, surplus);
        drop(state);
        if let Some(wakes) = wakes {
            wakes.wake();
        }
        if more == 0 {
            return;
        }
        let idle: Vec<_> = self.place(index).idle_others(MessageKind::Request).collect();
        for other in idle {
            let mut state = self.states[other].lock().unwrap();
            let LockedState { requests, wakes, .. } = &mut *state;
            let _ = requests.request_steal(wakes);
            self.release(other, state);
        }
    }

    /// A message becomes visible at a shard whose own threads are busy.
    fn push(&self, index: usize, message: usize) {
        let mut state = self.states[index].lock().unwrap();
        state.requests.push(message, ThreadToken::current());
        self.release(index, state);
    }

    fn take(&self, index: usize) -> Option<usize> {
        let mut state = self.states[index].lock().unwrap();
        let message = state.requests.take();
        self.release(index, state);
        message.map(|message| message.message)
    }

    /// `Shards::receive` of a follower at shard 0, for one message.
    fn recv(&self) -> usize {
        let place = self.place(0);
        loop {
            let mut state = self.states[0].lock().unwrap();
            if let Some(message) = state.requests.take() {
                self.release(0, state);
                return message.message;
            }
            let idle = place.idle(KINDS);
            let must_steal =
                state.requests.take_steal_request() || place.surpluses(KINDS).next().is_some();
            if !must_steal {
                let waiter = Arc::new(Waiter::thread());
                state.requests.enlist(waiter.clone());
                self.release(0, state);
                let waited = waiter.wait(Spin::new(Some(Duration::ZERO)), None);
                assert_eq!(waited.spurious, 0, "ENGINE-3: woken needlessly");
                assert_eq!(waiter.notice(), Some(Notice::Steal), "nothing arrives at shard 0");
            } else {
                self.release(0, state);
            }
            drop(idle);
            if let Some(message) = self.take(1) {
                return message;
            }
        }
    }
}

/// A message arrives at another shard while a thread is about to sleep: it sees the message, or is
/// asked to steal it.
#[test]
fn model_a_thread_does_not_sleep_while_another_shard_has_a_surplus() {
    loom::model(|| {
        let model = TwoShards::new();
        let receiver = {
            let model = model.clone();
            thread::spawn(move || model.recv())
        };
        model.push(1, 7);
        assert_eq!(receiver.join().unwrap(), 7);
    });
}

/// The shard's own thread takes the first message first: the thief waits for the second one.
#[test]
fn model_a_thief_that_comes_too_late_waits_again() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let model = TwoShards::new();
        let receiver = {
            let model = model.clone();
            thread::spawn(move || model.recv())
        };
        model.push(1, 1);
        let own = model.take(1);
        model.push(1, 2);
        let stolen = receiver.join().unwrap();
        assert_eq!(own.map_or(1, |_| 2), stolen, "each is received once");
    });
}
