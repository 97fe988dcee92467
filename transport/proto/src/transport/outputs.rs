//! Outputs: packets, events, and the time at which the core must be called.

use super::Transport;
use crate::event::Event;
use crate::expiry;
use crate::time::Instant;
use crate::timer::TimeoutReason;
use crate::tx::{Filler, Transmit};

impl Transport {
    /// Returns the next packets to send; `None` if none may leave now. Call it until then. Call it
    /// only when the driver has room: returned packets count as sent.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<'_>> {
        self.advance(now);
        let filler = Filler {
            protocol: &mut self.protocol,
            inbound: &mut self.inbound,
            output: &mut self.output,
        };
        filler.next()
    }

    /// Returns whether [`Transport::poll_event`] has something to return.
    #[must_use]
    #[inline]
    pub fn has_events(&self) -> bool {
        !self.output.observation.events.is_empty()
    }

    /// Returns the next event for the application, if there is one.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.output.observation.events.pop_front()
    }

    /// Returns when [`Transport::handle_timeout`] (or, for [`TimeoutReason::Pacer`],
    /// `poll_transmit`) should be called next, and why. An instant in the past means now; `None`
    /// means never.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, TimeoutReason)> {
        let mut next = (self.protocol.tables.peers.next_scan(), TimeoutReason::Peers);
        let mut consider = |at: Option<Instant>, reason| {
            if let Some(at) = at
                && at <= next.0
            {
                next = (at, reason);
            }
        };
        consider(self.protocol.timers.silence.next(), TimeoutReason::Silence);
        consider(self.protocol.timers.suspicions.next(), TimeoutReason::Silence);
        let overflow = self.protocol.timers.arrears.is_overflow_check_due();
        consider(overflow.then_some(Instant::ZERO), TimeoutReason::Silence);
        consider(self.protocol.timers.idle_acks.next(), TimeoutReason::Acks);
        consider(self.protocol.timers.deadlines.next(), TimeoutReason::Deadline);
        consider(self.output.outbound.throttled_until(self.protocol.now), TimeoutReason::Pacer);
        consider(
            self.protocol.timers.reaper.is_due().then_some(Instant::ZERO),
            TimeoutReason::Reap,
        );
        (next.0 < Instant::NEVER).then_some(next)
    }

    /// Runs everything that is due. Bounded work: call it again while `next_timeout` lies in the
    /// past.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        expiry::run(&mut self.protocol, &mut self.inbound, &mut self.output);
    }
}
