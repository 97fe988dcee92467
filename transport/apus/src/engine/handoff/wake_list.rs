//! Waiters to be woken when the core lock is released.

use super::waiter::{Notice, Waiter};
use smallvec::SmallVec;
use std::sync::Arc;

/// Waiters that were notified while the core lock was held. Waking them is a system call, and they
/// would only wait for the lock: it is done when the lock is free.
#[derive(Debug, Default)]
pub(crate) struct WakeList {
    pending: SmallVec<[Arc<Waiter>; 4]>,
}

impl WakeList {
    /// Notifies `waiter` now, and has it woken later if it sleeps. Returns `false` if it was
    /// notified before: until such a waiter removes itself, it is still on the other lists.
    pub(crate) fn notify(&mut self, waiter: Arc<Waiter>, notice: Notice) -> bool {
        let waiting = waiter.is_waiting();
        if waiting && waiter.notify(notice) {
            self.pending.push(waiter);
        }
        waiting
    }

    /// Takes the waiters to be woken without the lock; `None` if there are none.
    pub(crate) fn take(&mut self) -> Option<Self> {
        (!self.pending.is_empty()).then(|| std::mem::take(self))
    }

    /// Returns whether no waiter is to be woken.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns the number of waiters to be woken.
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Wakes all of them.
    pub(crate) fn wake(self) {
        for waiter in self.pending {
            waiter.wake();
        }
    }
}
