//! Bulk work: items of many bytes, which wait until no short work is left, and are then done one at
//! a time (FSRUN-7).
//!
//! A loop hands each item to [`BulkQueue::admit`], does a returned item at once, and calls
//! [`BulkQueue::pop`] once per round. So a request for attributes waits for at most one item of
//! bulk work, and bulk work makes progress in every round.
//!
//! Rationale: with a bulk reader active, the slowest `stat`s waited in equal parts for copies of up
//! to 512 KiB into the kernel, for the scheduler, and for a server that served eight long reads
//! first (lab/log, 2026-11-26). Outstanding requests have no order, so the results stay
//! linearisable.

use std::collections::VecDeque;

/// Minimum size of bulk work in bytes. Chosen by us: copying fewer takes less time than a system
/// call with its wake-up.
pub(crate) const BULK: u64 = 64 << 10;

/// Maximum number of waiting items. Chosen by us: more than 100 clients have outstanding. Beyond
/// that, items are done in their order.
const MOST: usize = 1024;

/// Bulk work that waits, in its order.
#[derive(Debug)]
pub(crate) struct BulkQueue<T>(VecDeque<T>);

impl<T> BulkQueue<T> {
    /// Returns an empty queue.
    pub(crate) const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Returns an item that must be done at once: it has few bytes, or too many others wait. Queues
    /// it otherwise.
    pub(crate) fn admit(&mut self, bytes: u64, item: T) -> Option<T> {
        if bytes < BULK || self.0.len() >= MOST {
            return Some(item);
        }
        self.0.push_back(item);
        None
    }

    /// Takes the item that has waited longest.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.0.pop_front()
    }

    /// Returns whether no item waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FSRUN-7: short items do not wait, and long items keep their order.
    #[test]
    fn short_work_overtakes_bulk_work() {
        let mut queue = BulkQueue::new();
        let items =
            [("read 1", BULK), ("stat", 100), ("read 2", 8 * BULK), ("read of a few", BULK - 1)];
        let at_once: Vec<_> =
            items.iter().filter_map(|(name, bytes)| queue.admit(*bytes, *name)).collect();
        assert_eq!(at_once, ["stat", "read of a few"]);
        assert_eq!((queue.pop(), queue.is_empty()), (Some("read 1"), false));
        assert_eq!(queue.admit(BULK, "read 3"), None);
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some("read 2"), Some("read 3"), None]);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut queue = BulkQueue::new();
        let kept = (0..2 * MOST).filter(|item| queue.admit(BULK, *item).is_none()).count();
        assert_eq!(kept, MOST);
    }
}
