//! How does an endpoint end, and when has everything been acknowledged?

use super::{Arrived, Core};
use crate::engine::medium::Origin;
use crate::engine::waiter::Notice;
use crate::error::Closed;
use apus_proto::Refusal;
use std::time::Duration;

impl Core {
    /// Whether everything that was sent has been acknowledged, and not only forgotten.
    pub(in crate::engine) fn is_drained(&mut self) -> bool {
        if self.transport.unacknowledged_bytes() > 0 || self.gave_up {
            return false;
        }
        let now = self.time;
        let Some(local) = &mut self.local else { return true };
        let drained = local.is_drained();
        if !drained {
            local.schedule_drain_check(now);
        }
        drained
    }

    pub(super) fn notify_drained(&mut self) {
        for waiter in self.draining.drain(..) {
            self.wakes.notify(waiter, Notice::Ready);
        }
    }

    /// Why the endpoint does not work any more.
    pub(crate) fn closed_error(&self) -> Closed {
        self.closed.clone().unwrap_or(Closed::ShutDown)
    }

    /// Ends everything, for the reason given. What waits is told so.
    pub(crate) fn close(&mut self, why: Closed) {
        if self.closed.is_some() {
            return;
        }
        self.closed = Some(why);
        // A reply that was accepted leaves: the protocol forgets those that have not.
        self.transmit_held_back();
        self.read_clock();
        self.gave_up = !self.is_drained();
        self.transport.shut_down(self.time);
        self.deliver();
        let requests: Vec<Arrived> = self.requests.drain().collect();
        for request in requests {
            self.transport.payload_consumed(request.payload.len());
            if let Origin::Local(pair, id) = request.origin {
                self.abandon_locally(&pair, id, Refusal::ShuttingDown);
            }
        }
        self.close_locally();
        // The refusals leave, if the driver still can.
        let _ = self.try_transmit(usize::MAX);
        self.requests.dismiss(&mut self.wakes);
        self.completions.dismiss(&mut self.wakes);
        self.notify_room();
        self.notify_drained();
        // Whoever lets the turn go from now on does not put the alarm off.
        self.background_wake_after = None;
        self.wake_background_poller(Duration::ZERO);
    }
}
