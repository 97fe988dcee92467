//! The server's side of shared memory: requests, their replies, and the requests to freeze the
//! trace.

use super::context::{LocalContext, command_error};
use super::cork::{Content, CorkedMessage};
use super::served_requests::ServedRequests;
use super::state::LocalState;
use crate::engine::state::{IncomingRequest, Origin};
use crate::engine::tracer::Tracer;
use apus_local::{Arrivals, Pair, PairEvent, PollEvent, SendBatch, SendError, SendTicket};
use apus_proto::{CommandError, Execution, FailureKind, Payload, Refusal, RpcError};
use bytes::Bytes;
use std::sync::Arc;

impl LocalContext<'_> {
    /// Handles arrivals from shared memory. Returns whether packets must leave over the network.
    #[must_use]
    pub(crate) fn handle(&mut self, arrivals: &mut Arrivals) -> bool {
        let (mut room, bound) = self.delivery.inbox.room(self.time.now());
        self.delivery.network.transport_mut().share_request_room(room, bound);
        let mut must_transmit = false;
        arrivals.drain(|pair, event| match event {
            PollEvent::Event(PairEvent::Request { id, payload }) => {
                let accepted = self.accept_request(pair, id, payload, room);
                room = room.saturating_sub(usize::from(accepted));
            }
            PollEvent::Event(PairEvent::Response { id, payload }) => {
                must_transmit |= self.end_call(pair.number(), id, Ok(payload));
            }
            PollEvent::Event(event) => must_transmit |= self.handle_other(pair, &event),
            PollEvent::Disconnected(why) => {
                self.pair_ended(pair, why);
                must_transmit = true;
            }
        });
        must_transmit
    }

    /// Handles an event that is no message. Returns whether packets must leave over the network.
    #[cold]
    fn handle_other(&mut self, pair: &Pair, event: &PairEvent) -> bool {
        let (id, kind, execution) = match *event {
            PairEvent::Refused { id, why } => {
                (id, FailureKind::Refused(why), Execution::stated_by(why))
            }
            PairEvent::Declined { id, length } => {
                let limit = self.delivery.network.transport().config().max_message();
                (id, FailureKind::ResponseTooLarge { length, limit }, Execution::Executed)
            }
            PairEvent::Cancelled { id } => {
                self.cancel_request(pair.number(), id);
                return false;
            }
            PairEvent::Freeze => {
                self.freeze_requested(pair);
                return false;
            }
            // Room, or an event of a later version: the waiters try again.
            _ => {
                self.flush();
                self.delivery.notify_room();
                return false;
            }
        };
        self.end_call(pair.number(), id, Err(RpcError { kind, execution }))
    }

    /// Accepts a request, or refuses it if there is no room. Returns whether it was accepted.
    fn accept_request(&mut self, pair: &Arc<Pair>, id: u64, payload: Bytes, room: usize) -> bool {
        let limit = self.delivery.network.transport().config().max_server_rpcs();
        // Only an endpoint that serves has a name that clients can connect to.
        let from = self.local.path.address_of(pair);
        let transport = self.delivery.network.transport_mut();
        let has_room = room > 0 || transport.accepts_beyond_bound(from);
        let counters = &mut self.delivery.observation.counters;
        if !has_room || self.local.served.open() >= limit {
            counters.local_refusals += 1;
            // Fails if the pair has ended: then no client waits.
            let _ = pair.refuse(id, Refusal::Overloaded);
            return false;
        }
        self.local.served.accept();
        counters.local_requests += 1;
        self.delivery.network.transport_mut().charge_external_payload(payload.len());
        self.local.clients.note(pair);
        let origin = Origin::Local(pair.number(), id);
        let rpc = self.delivery.observation.tracer.local_request_received(id, from, payload.len());
        let request = IncomingRequest { origin, from, payload, rpc, turn: 0 };
        self.delivery.push_request(request);
        true
    }

    /// A peer has frozen its trace and requests the same.
    fn freeze_requested(&mut self, pair: &Pair) {
        self.delivery.observation.tracer.freeze_requested_by(self.local.path.address_of(pair));
    }

    /// A client does not wait for a response any more.
    fn cancel_request(&mut self, pair: u64, id: u64) {
        let limit = self.delivery.network.transport().config().max_server_rpcs();
        self.local.served.cancel(pair, id, limit);
        self.delivery.watches.request_ended(Origin::Local(pair, id));
    }

    /// Replies to a request, in `batch` if there is one. The payload is taken if the reply is held
    /// back.
    ///
    /// # Errors
    ///
    /// As for [`apus_proto::Transport::reply`]. [`CommandError::UnknownRpc`]: the client has gone,
    /// or does not wait for the response.
    pub(crate) fn reply(
        &mut self,
        number: u64,
        id: u64,
        payload: &mut Payload,
        batch: Option<&mut SendBatch<'_>>,
    ) -> Result<(), CommandError> {
        let holds_back = batch.is_none() && self.holds_back(payload)?;
        let LocalState { served, clients, .. } = &mut *self.local;
        if served.take_cancelled(number, id) {
            served.finish();
            return Err(CommandError::UnknownRpc);
        }
        if let Some(batch) = batch {
            return served.replied(batch.send(id, payload.slices()));
        }
        let Some(pair) = clients.get(number) else {
            served.finish();
            return Err(CommandError::UnknownRpc);
        };
        if holds_back {
            served.finish();
            let content = Content::Reply { id, payload: std::mem::take(payload) };
            let message = CorkedMessage { pair: pair.clone(), content };
            self.local.hold_back(message, self.delivery.calls);
            return Ok(());
        }
        served.replied(pair.send(id, payload.slices()))
    }
}

impl ServedRequests {
    /// Finishes a request whose reply was sent, or whose client has gone.
    fn replied(&mut self, sent: Result<SendTicket, SendError>) -> Result<(), CommandError> {
        if matches!(sent, Ok(_) | Err(SendError::Disconnected(_))) {
            self.finish();
        }
        sent.map(drop).map_err(command_error)
    }
}

impl LocalState {
    /// Returns whether the client of a request still waits.
    pub(crate) fn is_waiting(&mut self, pair: u64, id: u64) -> bool {
        self.clients.get(pair).is_some() && !self.served.is_cancelled(pair, id)
    }

    /// Drops a request without a reply.
    pub(crate) fn abandon(&mut self, pair: u64, id: u64, why: Refusal) {
        self.served.finish();
        if !self.served.take_cancelled(pair, id)
            && let Some(pair) = self.clients.get(pair)
        {
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
