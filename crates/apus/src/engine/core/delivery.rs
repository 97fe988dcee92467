//! What becomes visible to the application, and who is told?
//!
//! Kept here: E2 in [`engine`](crate::engine). A message is queued when it is complete, before anybody is told of it.

use super::Core;
use crate::engine::calls::{Key, Response};
use crate::engine::handoff::From;
use crate::engine::medium::Origin;
use crate::engine::tracer::Traced;
use crate::overload::Work;
use apus_proto::{Address, Event, RpcError};
use apus_trace::{Rpc, recorder};
use bytes::Bytes;

/// A request that has arrived.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) origin: Origin,
    pub(crate) from: Address,
    pub(crate) payload: Bytes,
    /// If it is traced.
    pub(crate) rpc: Option<Rpc>,
}

/// A call of the shared kind that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) cookie: u64,
    pub(crate) result: Result<Bytes, RpcError>,
    /// If it is traced.
    pub(crate) rpc: Option<Rpc>,
}

impl Traced for Arrived {
    fn rpc(&self) -> Option<Rpc> {
        self.rpc
    }
}

impl Traced for Ended {
    fn rpc(&self) -> Option<Rpc> {
        self.rpc
    }
}

impl Core {
    /// Puts what the protocol has to say where it is waited for. Messages become visible here; who
    /// shall take them is decided by [`Core::assign`].
    pub(crate) fn deliver(&mut self) {
        self.deliver_within(usize::MAX);
    }

    /// The same, but no more than the pass may; what is left comes in the next one, before anything else is
    /// received. Then sees whether too many requests wait; `drained` says that no more are in the socket.
    pub(in crate::engine) fn deliver_in_pass(&mut self, drained: bool) {
        let quota = self.budget.left(Work::Deliveries);
        self.deliver_within(quota);
        if self.more_to_deliver {
            self.spend(Work::Deliveries, quota);
        }
        let stops = self.backlog.stops();
        self.backlog.pass(self.requests.len(), drained, self.time);
        if self.backlog.stops() > stops {
            let waiting = self.requests.len() as u32;
            recorder::record(apus_trace::Event::FeedbackStop, waiting, 0);
        }
    }

    fn deliver_within(&mut self, mut quota: usize) {
        self.more_to_deliver = false;
        while let Some(event) = self.transport.poll_event() {
            match event {
                Event::Request { rpc, from, payload } => {
                    let origin = Origin::Network(rpc);
                    let rpc = self.tracer.delivered(rpc);
                    self.requests.push(Arrived { origin, from, payload, rpc }, self.producer);
                }
                Event::Response { cookie, payload, .. } => self.end_call(cookie, Ok(payload)),
                Event::Failed { cookie, error, .. } => self.end_call(cookie, Err(error)),
                Event::NewPeer(peer) => self.renew_packet_limit(peer),
                Event::Room => self.notify_room(),
                // An event that a later core may know.
                _ => {}
            }
            quota -= 1;
            if quota == 0 {
                self.more_to_deliver = true;
                return;
            }
        }
        self.tracer.all_delivered();
    }

    /// A call has ended: whoever awaits it is told.
    pub(in crate::engine) fn end_call(&mut self, cookie: u64, result: Result<Bytes, RpcError>) {
        let by = self.producer;
        let key = Key::from_cookie(cookie);
        let rpc = self.calls.rpc(key);
        let result = From { message: Response { result, rpc }, by };
        if let Some(ended) = self.calls.end(key, result, &mut self.wakes, &mut self.metrics) {
            self.completions.push(ended, by);
        }
    }

    /// Tells those who wait that there is something for them, the newest first.
    pub(crate) fn assign(&mut self) {
        self.metrics.handoffs += self.requests.assign(&mut self.wakes);
        self.metrics.handoffs += self.completions.assign(&mut self.wakes);
        if !self.draining.is_empty() && self.is_drained() {
            self.notify_drained();
        }
    }

    /// Whether requests wait and the network has not been looked at for a while; it counts as looked at then.
    pub(in crate::engine) fn is_poll_due(&mut self) -> bool {
        if self.held_back > 0 && self.corks > 0 {
            // The commands that a cork holds back did not look at the clock.
            self.read_clock();
        }
        let is_due = self.backlog.is_poll_due(self.time);
        if is_due {
            self.backlog.note_poll(self.time);
        }
        is_due
    }

    /// The application has taken a request.
    pub(in crate::engine) fn request_taken(&mut self) {
        // Receiving had stopped, and goes on.
        self.check_now |= self.backlog.taken(self.requests.len(), self.time);
    }
}
