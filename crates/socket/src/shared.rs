//! What do the two halves have in common?
//!
//! The socket, on which they make system calls without ever meeting; the counters, of which each half
//! writes its own; and the two things that one half tells the other: that the error queue should be
//! looked at, and reports of sends that failed at once.

use std::any::Any;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use apus_driver::NetworkError;
use arrayvec::ArrayVec;
use socket2::Socket;

use crate::address::Family;
use crate::carrier::Carrier;
use crate::counters::SocketCounters;

/// Reports that wait to be taken, at most. An engine that takes none does not need them.
const REFUSALS: usize = 256;

/// Bytes of a refused packet that come back: more than the longest header of the protocol.
pub(crate) const BEGINNING: usize = 128;

/// What both halves hold.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) socket: Socket,
    pub(crate) family: Family,
    pub(crate) carrier: Carrier,
    pub(crate) counters: Arc<SocketCounters>,
    /// Up if the error queue may have entries, or `refusals` has (invariant U2). Whoever raises it
    /// does so after the fact, and `reports` lowers it before it looks.
    signal: AtomicBool,
    refusals: Mutex<VecDeque<Refusal>>,
    /// What belongs to the socket and is let go after it.
    _held: Option<Box<dyn Any + Send + Sync>>,
}

/// A send that failed at once because of its destination.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) peer: SocketAddr,
    pub(crate) trouble: NetworkError,
    pub(crate) beginning: ArrayVec<u8, BEGINNING>,
}

impl Shared {
    /// What both halves hold: a socket of this family that never blocks, and what carries its packets.
    #[must_use]
    pub(crate) fn new(socket: Socket, family: Family, carrier: Carrier) -> Self {
        Self {
            socket,
            family,
            carrier,
            counters: Arc::default(),
            signal: AtomicBool::new(false),
            refusals: Mutex::default(),
            _held: None,
        }
    }

    /// The same with something that lives as long as the socket.
    #[must_use]
    pub(crate) fn holding(self, what: impl Send + Sync + 'static) -> Self {
        Self { _held: Some(Box::new(what)), ..self }
    }

    /// What has been done so far.
    #[must_use]
    pub(crate) fn counters(&self) -> Arc<SocketCounters> {
        self.counters.clone()
    }

    /// Something may have gone wrong: the next `reports` shall look.
    #[cold]
    pub(crate) fn raise(&self) {
        // Release: `lower` of the other half must see what was pushed before.
        self.signal.store(true, Ordering::Release);
    }

    /// Whether something may have gone wrong since the last call.
    #[inline]
    pub(crate) fn lower(&self) -> bool {
        // The plain load is the usual case and costs nothing. Acquire pairs with `raise`.
        self.signal.load(Ordering::Relaxed) && self.signal.swap(false, Ordering::Acquire)
    }

    /// Takes note of a refused send, for the other half.
    #[cold]
    pub(crate) fn refuse(&self, refusal: Refusal) {
        let mut refusals = self.lock();
        if refusals.len() < REFUSALS {
            refusals.push_back(refusal);
        }
        drop(refusals);
        self.raise();
    }

    pub(crate) fn take_refusals(&self) -> VecDeque<Refusal> {
        std::mem::take(&mut *self.lock())
    }

    /// Held for a few instructions, and only when something went wrong.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Refusal>> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Shared {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
