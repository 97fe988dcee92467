//! The server's side of shared memory: requests, their replies, and the requests to freeze the
//! trace.

use super::context::{LocalContext, command_error};
use super::cork::{Content, CorkedMessage};
use super::event::LocalEvent;
use super::state::LocalState;
use crate::engine::message::{IncomingRequest, Origin};
use crate::engine::tracer::Tracer;
use apus_local::{Pair, SendError};
use apus_proto::{CommandError, Payload, Refusal};
use bytes::Bytes;
use std::sync::Arc;

impl LocalContext<'_> {
    /// Handles what came through shared memory. Returns whether packets must leave over the
    /// network.
    #[must_use]
    pub(crate) fn handle(&mut self, events: &mut Vec<LocalEvent>) -> bool {
        let mut room = self.delivery.inbox.room(self.time.now());
        let mut must_transmit = false;
        for event in events.drain(..) {
            match event {
                LocalEvent::Request { pair, id, payload } => {
                    let accepted = self.accept_request(pair, id, payload, room);
                    room -= usize::from(accepted);
                }
                LocalEvent::Cancelled { pair, id } => self.cancel_request(pair, id),
                LocalEvent::Ended { pair, id, result } => {
                    must_transmit |= self.end_call(pair, id, result);
                }
                LocalEvent::Freeze { pair } => self.freeze_requested(&pair),
                LocalEvent::Room => {
                    self.flush();
                    self.delivery.notify_room();
                }
                LocalEvent::Disconnected { pair, why } => {
                    self.pair_ended(&pair, why);
                    must_transmit = true;
                }
            }
        }
        must_transmit
    }

    /// Accepts a request, or refuses it if there is no room. Returns whether it was accepted.
    fn accept_request(&mut self, pair: Arc<Pair>, id: u64, payload: Bytes, room: usize) -> bool {
        let limit = self.delivery.network.transport().config().max_server_rpcs();
        let counters = &mut self.delivery.observation.counters;
        // Only an endpoint that serves has a name that clients can connect to.
        if room == 0 || self.local.served.open() >= limit {
            counters.local_refusals += 1;
            // Fails if the pair has ended: then no client waits.
            let _ = pair.refuse(id, Refusal::Overloaded);
            return false;
        }
        self.local.served.accept();
        counters.local_requests += 1;
        self.delivery.network.charge_external_payload(payload.len());
        let from = self.local.path.address_of(&pair);
        let origin = Origin::Local(pair, id);
        let rpc = self.delivery.observation.tracer.local_request_received(id, from, payload.len());
        self.delivery.inbox.push_request(IncomingRequest { origin, from, payload, rpc });
        true
    }

    /// A peer has frozen its trace and asks for the same.
    fn freeze_requested(&mut self, pair: &Pair) {
        self.delivery.observation.tracer.freeze_requested_by(self.local.path.address_of(pair));
    }

    /// A client does not wait for a response any more.
    fn cancel_request(&mut self, pair: u64, id: u64) {
        let limit = self.delivery.network.transport().config().max_server_rpcs();
        self.local.served.cancel(pair, id, limit);
    }

    /// Replies to a request. The payload is taken if the reply is held back.
    ///
    /// # Errors
    ///
    /// As for [`apus_proto::Transport::reply`]. [`CommandError::UnknownRpc`]: the client has gone,
    /// or does not wait for the response.
    pub(crate) fn reply(
        &mut self,
        pair: &Arc<Pair>,
        id: u64,
        payload: &mut Payload,
    ) -> Result<(), CommandError> {
        let holds_back = self.holds_back(payload)?;
        let served = &mut self.local.served;
        if served.take_cancelled(pair.number(), id) {
            served.finish();
            return Err(CommandError::UnknownRpc);
        }
        if holds_back {
            served.finish();
            let content = Content::Reply { id, payload: std::mem::take(payload) };
            let message = CorkedMessage { pair: pair.clone(), content };
            self.local.hold_back(message, self.delivery.calls);
            return Ok(());
        }
        match pair.send(id, payload.slices()) {
            Ok(_) => {
                served.finish();
                Ok(())
            }
            Err(error) => {
                if matches!(error, SendError::Disconnected(_)) {
                    served.finish();
                }
                Err(command_error(error))
            }
        }
    }
}

impl LocalState {
    /// Drops a request without a reply.
    pub(crate) fn abandon(&mut self, pair: &Pair, id: u64, why: Refusal) {
        self.served.finish();
        if !self.served.take_cancelled(pair.number(), id) {
            let _ = pair.refuse(id, why);
        }
    }

    /// Asks all peers to freeze their traces. Returns their number.
    pub(crate) fn freeze_peers(&self, tracer: &mut Tracer) -> usize {
        let mut asked = 0;
        for pair in self.path.local.pairs() {
            // Fails if the pair has ended.
            if pair.freeze().is_ok() {
                asked += 1;
                tracer.freeze_requested_of(self.path.address_of(&pair));
            }
        }
        asked
    }
}
