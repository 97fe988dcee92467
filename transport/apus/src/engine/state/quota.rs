//! Remaining work of the current pass of the loop, and deferred work of the last one.

use crate::overload::{Budget, Quotas, Work};
use apus_trace::{Event, recorder};

/// The quotas of the current pass, and whether they ended its transmission or its delivery early.
#[derive(Debug)]
pub(crate) struct PassQuota {
    budget: Budget,
    more_to_send: bool,
    more_to_deliver: bool,
}

impl PassQuota {
    /// Returns the state before the first pass.
    pub(crate) const fn new(quotas: Quotas) -> Self {
        Self { budget: Budget::new(quotas), more_to_send: false, more_to_deliver: false }
    }

    /// Starts a pass that has received `packets`.
    pub(crate) fn begin_pass(&mut self, packets: usize) {
        self.budget.begin();
        self.spend(Work::Receive, packets);
    }

    /// Charges `amount` to the current pass.
    pub(crate) fn spend(&mut self, work: Work, amount: usize) {
        let before = self.budget.exhausted(work);
        self.budget.spend(work, amount);
        if self.budget.exhausted(work) > before {
            recorder::record(Event::QuotaHit, work as u32, 0);
        }
    }

    /// Returns how much the current pass may still do: bytes for transmission, events for
    /// deliveries.
    pub(crate) const fn left(&self, work: Work) -> usize {
        self.budget.left(work)
    }

    /// Notes whether a quota ended a transmission before everything had left.
    pub(crate) const fn set_more_to_send(&mut self, more: bool) {
        self.more_to_send = more;
    }

    /// Returns whether a quota ended the last transmission before everything had left.
    pub(crate) const fn more_to_send(&self) -> bool {
        self.more_to_send
    }

    /// Notes whether a quota ended a delivery before everything was visible.
    pub(crate) const fn set_more_to_deliver(&mut self, more: bool) {
        self.more_to_deliver = more;
    }

    /// Returns whether a quota ended the last delivery before everything was visible.
    pub(crate) const fn more_to_deliver(&self) -> bool {
        self.more_to_deliver
    }

    /// Returns the number of times that a quota was exhausted.
    pub(crate) fn exhaustions(&self) -> u64 {
        Work::ALL.map(|work| self.budget.exhausted(work)).iter().sum()
    }
}
