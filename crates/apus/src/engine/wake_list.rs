//! Who must be roused when the core lock is free again?

use super::waiter::{Notice, Waiter};
use smallvec::SmallVec;
use std::sync::Arc;

/// Waiters that have been told something while the core lock was held. Rousing them is a system call,
/// and they would only run into the lock: it waits until the lock is free.
#[derive(Debug, Default)]
pub(crate) struct WakeList {
    pending: SmallVec<[Arc<Waiter>; 4]>,
}

impl WakeList {
    /// Tells `waiter` something now and rouses it later, if it sleeps. `false` if it has been told
    /// something before and is on its way: between being told and taking itself off the other lists, a
    /// waiter still stands on them.
    pub(crate) fn notify(&mut self, waiter: Arc<Waiter>, notice: Notice) -> bool {
        let waiting = waiter.is_waiting();
        if waiting && waiter.notify(notice) {
            self.pending.push(waiter);
        }
        waiting
    }

    /// Takes what is pending, to be roused without the lock; `None` if there is nothing.
    pub(crate) fn take(&mut self) -> Option<Self> {
        (!self.pending.is_empty()).then(|| std::mem::take(self))
    }

    /// How many are to be roused.
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Rouses all.
    pub(crate) fn wake(self) {
        for waiter in self.pending {
            waiter.wake();
        }
    }
}
