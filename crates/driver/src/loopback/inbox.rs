//! What waits for a host of the loopback network?

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use crate::{Ecn, NetworkError};

/// A packet on its way or arrived.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    pub(super) from: SocketAddr,
    pub(super) ecn: Ecn,
    pub(super) bytes: Vec<u8>,
}

/// A report that waits to be taken.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) peer: SocketAddr,
    pub(super) trouble: NetworkError,
    pub(super) packet: Vec<u8>,
}

/// Packets and reports for one host, with a descriptor that says whether there are any.
#[derive(Debug)]
pub(super) struct Inbox {
    /// Packets held at most, and reports held at most (invariant L2).
    queue: usize,
    waiting: Mutex<Waiting>,
    /// Counts above zero exactly while something waits (invariant L1). Changed only under the lock
    /// of `waiting`.
    signal: OwnedFd,
}

#[derive(Debug, Default)]
struct Waiting {
    letters: VecDeque<Letter>,
    refusals: VecDeque<Refusal>,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.letters.is_empty() && self.refusals.is_empty()
    }
}

impl Inbox {
    pub(super) fn new(queue: usize) -> Self {
        let signal = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .expect("the process has a file descriptor left");
        Self { queue, waiting: Mutex::default(), signal }
    }

    /// Takes the letter in, or says that there was no room.
    pub(super) fn put(&self, letter: Letter) -> bool {
        self.change(|waiting| {
            let room = waiting.letters.len() < self.queue;
            if room {
                waiting.letters.push_back(letter);
            }
            room
        })
    }

    /// Takes the report in; without room it is forgotten.
    pub(super) fn put_refusal(&self, refusal: Refusal) {
        self.change(|waiting| {
            if waiting.refusals.len() < self.queue {
                waiting.refusals.push_back(refusal);
            }
        });
    }

    /// Moves at most `limit` letters to `letters`.
    pub(super) fn take(&self, limit: usize, letters: &mut VecDeque<Letter>) {
        self.change(|waiting| {
            let count = limit.min(waiting.letters.len());
            letters.extend(waiting.letters.drain(..count));
        });
    }

    pub(super) fn take_refusals(&self) -> VecDeque<Refusal> {
        self.change(|waiting| std::mem::take(&mut waiting.refusals))
    }

    /// Applies `change` and keeps invariant L1.
    fn change<R>(&self, change: impl FnOnce(&mut Waiting) -> R) -> R {
        let mut waiting = self.lock();
        let was_empty = waiting.is_empty();
        let result = change(&mut waiting);
        match (was_empty, waiting.is_empty()) {
            (true, false) => self.raise(),
            (false, true) => self.lower(),
            (true, true) | (false, false) => {}
        }
        result
    }

    fn raise(&self) {
        rustix::io::write(&self.signal, &1_u64.to_ne_bytes()).expect("L1: the count was zero");
    }

    fn lower(&self) {
        rustix::io::read(&self.signal, &mut [0; 8]).expect("L1: the count was above zero");
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signal.as_fd()
    }
}
