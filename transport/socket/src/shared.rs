//! State shared by the two halves.
//!
//! The socket, used by both halves independently; the counters, a set for each half; and two kinds
//! of messages between the halves: the error signal, and failures of sends.

use std::any::Any;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use apus_driver::NetworkError;
use apus_process::Descriptor;
use arrayvec::ArrayVec;
use socket2::Socket;

use crate::address::Family;
use crate::carrier::Carrier;
use crate::counters::SocketCounters;
use crate::fallback::RefusedCalls;

/// Maximum number of failures queued for `reports`. An engine that reads no reports needs none.
const MAX_FAILURES: usize = 256;

/// Bytes reported of a refused packet: more than the longest header of the protocol.
pub(crate) const BEGINNING: usize = 128;

/// State shared by the two halves.
#[derive(Debug)]
pub(crate) struct SharedSocket {
    pub(crate) socket: Descriptor<Socket>,
    pub(crate) family: Family,
    pub(crate) carrier: Carrier,
    pub(crate) counters: Arc<SocketCounters>,
    /// Set if the error queue may have entries or `failures` has (SOCKET-2). It is set after an
    /// entry is added, and `reports` resets it before it reads.
    error_signal: AtomicBool,
    failures: Mutex<VecDeque<SendFailure>>,
    /// Calls that either half has replaced by simpler ones.
    pub(crate) refused_calls: RefusedCalls,
    /// Resources released after the socket.
    _owned: Option<Box<dyn Any + Send + Sync>>,
}

/// A send that failed at once because of its destination.
#[derive(Debug)]
pub(crate) struct SendFailure {
    pub(crate) peer: SocketAddr,
    pub(crate) error: NetworkError,
    pub(crate) beginning: ArrayVec<u8, BEGINNING>,
}

impl SharedSocket {
    /// Returns the shared state of a non-blocking socket of this family.
    #[must_use]
    pub(crate) fn new(socket: Socket, family: Family, carrier: Carrier) -> Self {
        Self {
            socket: Descriptor::new(socket),
            family,
            carrier,
            counters: Arc::default(),
            error_signal: AtomicBool::new(false),
            failures: Mutex::default(),
            refused_calls: RefusedCalls::default(),
            _owned: None,
        }
    }

    /// Adds a resource that must live as long as the socket.
    #[must_use]
    pub(crate) fn owning(self, resource: impl Send + Sync + 'static) -> Self {
        Self { _owned: Some(Box::new(resource)), ..self }
    }

    /// Shares the counters of the socket of `other`, whose receiving half the same thread owns.
    #[must_use]
    pub(crate) fn counting_with(self, other: &Self) -> Self {
        Self { counters: other.counters(), ..self }
    }

    /// Returns the counters.
    #[must_use]
    pub(crate) fn counters(&self) -> Arc<SocketCounters> {
        self.counters.clone()
    }

    /// Raises the error signal: the next `reports` reads the error queue and the failures.
    #[cold]
    pub(crate) fn raise_error_signal(&self) {
        // Release: `take_error_signal` of the other half must see failures that were added before.
        self.error_signal.store(true, Ordering::Release);
    }

    /// Returns whether the error signal was raised since the last call, and resets it.
    #[inline]
    pub(crate) fn take_error_signal(&self) -> bool {
        // The plain load is the usual case and free. Acquire pairs with `raise_error_signal`.
        self.error_signal.load(Ordering::Relaxed)
            && self.error_signal.swap(false, Ordering::Acquire)
    }

    /// Adds a failed send, for the other half.
    #[cold]
    pub(crate) fn add_failure(&self, failure: SendFailure) {
        let mut failures = self.lock();
        if failures.len() < MAX_FAILURES {
            failures.push_back(failure);
        }
        drop(failures);
        self.raise_error_signal();
    }

    pub(crate) fn take_failures(&self) -> VecDeque<SendFailure> {
        std::mem::take(&mut *self.lock())
    }

    /// Held for a few instructions, and only after a failure.
    fn lock(&self) -> MutexGuard<'_, VecDeque<SendFailure>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for SharedSocket {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
