//! Forwarding: the steps between receiving and sending a packet.

use super::counters::{Counters, send};
use super::verdicts::ToFilter;
use crate::livelock::frame::{Frame, Unfit};
use crate::livelock::routes::{Hop, Routes};
use crate::livelock::tap::Tap;
use apus_testbed::error::Error;
use apus_testbed::fabric::RouterPath;

/// The stage-independent state of the router.
pub(super) struct Forwarder {
    routes: Routes,
    /// The filter that every packet passes, if there is one.
    pub(super) filter: Option<ToFilter>,
    output: Tap,
    pub(super) counters: Counters,
}

impl Forwarder {
    pub(super) fn new(filter: Option<ToFilter>, output: Tap) -> Self {
        let routes = Routes::of_experiment();
        Self { routes, filter, output, counters: Counters::default() }
    }

    /// Prepares a packet for its next hop; `false` if it has none, or must be dropped.
    fn route(&mut self, frame: &mut Frame) -> bool {
        let count = match frame.destination().map(|destination| self.routes.find(destination)) {
            Ok(Some(Hop::Out(neighbour))) => {
                frame.pass_on(RouterPath::OUT_ADDRESS, neighbour);
                return true;
            }
            Ok(Some(Hop::Nowhere) | None) => &mut self.counters.no_route,
            Err(Unfit::Malformed) => &mut self.counters.malformed,
            Err(Unfit::Checksum) => &mut self.counters.checksum,
            Err(Unfit::Expired) => &mut self.counters.expired,
        };
        *count += 1;
        false
    }

    /// Routes a packet. Returns whether to send it now; otherwise it was dropped, or passed to the
    /// filter.
    pub(super) fn handle(&mut self, frame: &mut Frame) -> Result<bool, Error> {
        if !self.route(frame) {
            return Ok(false);
        }
        let Some(filter) = &mut self.filter else { return Ok(true) };
        if !filter.ask(frame)? {
            self.counters.filter_queue_full += 1;
        }
        Ok(false)
    }

    /// Sends a packet.
    pub(super) fn send(&mut self, frame: &Frame) -> Result<(), Error> {
        send(&self.output, frame, &mut self.counters)
    }
}
