//! The end of an endpoint, and whether everything has been acknowledged before it.

use super::root::Core;
use crate::engine::state::Origin;
use crate::error::Closed;
use apus_proto::Refusal;

impl Core {
    /// Returns whether everything that was sent has been acknowledged, as opposed to forgotten.
    pub(in crate::engine) fn is_drained(&mut self) -> bool {
        if self.transport().unacknowledged_bytes() > 0 || self.drain.gave_up() {
            return false;
        }
        let now = self.time.now();
        self.local.as_mut().is_none_or(|local| local.is_drained(now))
    }

    /// Returns why the shard was closed, once: the other shards of the endpoint must be closed,
    /// too.
    pub(in crate::engine) fn take_close(&mut self) -> Option<Closed> {
        std::mem::take(&mut self.spreads_close).then(|| self.closed_error())
    }

    /// Closes the endpoint for a reason: outstanding calls fail, requests are refused, and all
    /// waiters are notified.
    pub(crate) fn close(&mut self, why: Closed) {
        if self.closed.is_some() {
            return;
        }
        self.closed = Some(why);
        self.spreads_close = true;
        // Accepted replies leave first: the protocol discards unsent messages.
        self.transmit_held_back();
        let now = self.time.read_clock();
        let gave_up = !self.is_drained();
        self.drain.set_gave_up(gave_up);
        self.network.transport_mut().shut_down(now);
        self.deliver();
        for request in self.inbox.drain_requests() {
            self.network.transport_mut().payload_consumed(request.payload.len());
            if let (Origin::Local(pair, id), Some(local)) = (request.origin, &mut self.local) {
                local.abandon(pair, id, Refusal::ShuttingDown);
            }
        }
        if let Some(mut local) = self.local_context() {
            local.close();
        }
        // The refusals leave, if the driver is not broken.
        let _ = self.try_transmit(usize::MAX);
        self.watches.end_all();
        self.inbox.dismiss(&mut self.wakes);
        self.room.notify(&mut self.polling, &mut self.wakes);
        self.drain.notify(&mut self.wakes);
        self.polling.close();
    }
}
