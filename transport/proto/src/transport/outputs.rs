//! Outputs: packets, events, and the time at which the core must be called.

use super::Transport;
use crate::event::Event;
use crate::expiry;
use crate::time::Instant;
use crate::timer::TimeoutReason;
use crate::tx::{Filler, Transmit};

impl Transport {
    /// Returns the next packets to send; `None` if nothing may leave now. Call it until then. Ask only when the driver
    /// has room: what is returned counts as sent.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<'_>> {
        self.advance(now);
        let filler = Filler {
            now: self.core.now,
            config: &self.core.config,
            tables: &mut self.core.tables,
            granter: &mut self.core.inbound.granter,
            budget: &mut self.core.inbound.budget.receive,
            cutoffs: &self.core.inbound.cutoffs,
            outbound: &mut self.core.outbound,
            observation: &mut self.core.observation,
        };
        filler.next()
    }

    /// Returns whether [`Transport::poll_event`] has something to return.
    #[must_use]
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.core.observation.events.is_empty()
    }

    /// Returns what the application should know; `None` if there is nothing (any more).
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.core.observation.events.pop_front()
    }

    /// Returns when [`Transport::handle_timeout`] (or, for [`TimeoutReason::Pacer`], `poll_transmit`) should be
    /// called next, and why. An instant in the past means now. `None`: nothing is going on.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, TimeoutReason)> {
        let mut next = (self.core.tables.peers.next_scan(), TimeoutReason::Peers);
        let mut consider = |at: Option<Instant>, reason| {
            if let Some(at) = at
                && at <= next.0
            {
                next = (at, reason);
            }
        };
        consider(self.core.timers.silence.next(), TimeoutReason::Silence);
        consider(self.core.timers.suspicions.next(), TimeoutReason::Silence);
        let overflow = self.core.timers.arrears.is_overflow_check_due();
        consider(overflow.then_some(Instant::ZERO), TimeoutReason::Silence);
        consider(self.core.timers.idle_acks.next(), TimeoutReason::Acks);
        consider(self.core.timers.deadlines.next(), TimeoutReason::Deadline);
        consider(self.core.outbound.throttled_until(self.core.now), TimeoutReason::Pacer);
        consider(self.core.timers.reaper.is_due().then_some(Instant::ZERO), TimeoutReason::Reap);
        (next.0 < Instant::NEVER).then_some(next)
    }

    /// Does what has become due. Bounded work: call it again while `next_timeout` lies in the past.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        expiry::run(&mut self.core);
    }
}
