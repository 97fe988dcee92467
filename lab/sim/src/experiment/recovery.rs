//! Recovery: the time from a stall until the backlog is as short as before it.
//!
//! The backlog before the stall fluctuates. It has recovered when it first falls to the maximum
//! that was measured before the stall.

use crate::processor::Stall;
use apus_workload::time::Nanos;

/// Backlog around a stall.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    stall: Stall,
    /// Longest backlog before the stall, in bytes.
    longest: u64,
    at: Option<Nanos>,
}

impl Recovery {
    pub(super) const fn new(stall: Stall) -> Self {
        Self { stall, longest: 0, at: None }
    }

    /// Records the backlog at `now`.
    pub(super) const fn observe(&mut self, now: Nanos, backlog: u64) {
        if now < self.stall.from {
            if backlog > self.longest {
                self.longest = backlog;
            }
        } else if now >= self.stall.until && self.at.is_none() && backlog <= self.longest {
            self.at = Some(now);
        }
    }

    /// Returns the time from the end of the stall to the recovery; `None` without a recovery.
    pub(super) const fn time(&self) -> Option<Nanos> {
        match self.at {
            Some(at) => Some(at - self.stall.until),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backlog_has_recovered_when_it_is_as_short_as_before() {
        let mut recovery = Recovery::new(Stall { from: 100, until: 200 });
        recovery.observe(50, 10);
        recovery.observe(60, 7);
        recovery.observe(150, 5);
        recovery.observe(220, 50);
        assert_eq!(recovery.time(), None);
        recovery.observe(250, 10);
        recovery.observe(260, 3);
        assert_eq!(recovery.time(), Some(50));
    }
}
