//! What becomes of requests that come through memory?

use super::calls::command_error;
use super::cork::{Message, What};
use super::receiver::{LocalEvent, Receiver};
use crate::engine::core::{Arrived, Core};
use crate::engine::medium::Origin;
use apus_local::{Pair, SendError};
use apus_proto::{CommandError, Payload, Refusal};
use bytes::Bytes;
use std::sync::Arc;

impl Core {
    /// Handles what came through memory with the last look.
    pub(in crate::engine) fn handle_local(&mut self, receiver: &mut Receiver) {
        let Some(taken) = receiver.taken() else { return };
        let mut room = self.backlog.room(self.requests.len(), self.time);
        for one in taken.drain(..) {
            match one {
                LocalEvent::Request { pair, id, payload } => {
                    let accepted = self.accept_locally(pair, id, payload, room);
                    room -= usize::from(accepted);
                }
                LocalEvent::Cancelled { pair, id } => self.cancelled_locally(pair, id),
                LocalEvent::Ended { pair, id, result } => self.end_locally(pair, id, result),
                LocalEvent::Freeze { pair } => self.asked_to_freeze(&pair),
                LocalEvent::Room => {
                    self.flush_local();
                    self.notify_room();
                }
                LocalEvent::Gone { pair, why } => self.pair_ended(&pair, why),
            }
        }
        receiver.set_full(self.transport.is_receive_full());
    }

    /// Takes a request in, or refuses it; whether it was taken.
    fn accept_locally(&mut self, pair: Arc<Pair>, id: u64, payload: Bytes, room: usize) -> bool {
        let limit = self.transport.config().max_server_rpcs();
        let Some(local) = &mut self.local else { return false };
        // Clients only come to an endpoint that serves: others have no name.
        if room == 0 || local.serving >= limit {
            self.metrics.local_refusals += 1;
            // If it has ended, there is nobody to tell.
            let _ = pair.refuse(id, Refusal::Overloaded);
            return false;
        }
        local.serving += 1;
        self.metrics.local_requests += 1;
        self.transport.charge_external_payload(payload.len());
        let from = local.path.address_of(&pair);
        let origin = Origin::Local(pair, id);
        let rpc = self.tracer.came_locally(id, from, payload.len());
        self.requests.push(Arrived { origin, from, payload, rpc }, self.producer);
        true
    }

    /// A peer has frozen its trace, and asks for ours.
    fn asked_to_freeze(&mut self, pair: &Pair) {
        if let Some(local) = &self.local {
            self.tracer.asked_to_freeze(local.path.address_of(pair));
        }
    }

    /// Asks peers to freeze their traces; how many.
    pub(in crate::engine) fn freeze_local_peers(&mut self) -> usize {
        let Some(local) = &self.local else { return 0 };
        let mut asked = 0;
        for pair in local.path.local.pairs() {
            // One that has ended has nobody to ask.
            if pair.freeze().is_ok() {
                asked += 1;
                self.tracer.asks_to_freeze(local.path.address_of(&pair));
            }
        }
        asked
    }

    /// A client does not want an answer any more. If it was given already, there is nothing to do.
    fn cancelled_locally(&mut self, pair: u64, id: u64) {
        let limit = self.transport.config().max_server_rpcs();
        let Some(local) = &mut self.local else { return };
        if local.serving == 0 {
            local.cancelled.clear();
        } else if (local.cancelled.len() as u64) < limit {
            local.cancelled.insert((pair, id));
        }
        // Beyond that somebody cancels what he never asked for; the answers are sent, and nobody takes them.
    }

    /// Answers a request.
    ///
    /// # Errors
    ///
    /// As for [`apus_proto::Transport::reply`]. [`CommandError::UnknownRpc`]: the client has gone, or does not want the answer.
    pub(crate) fn reply_locally(
        &mut self,
        pair: &Arc<Pair>,
        id: u64,
        payload: &mut Payload,
    ) -> Result<(), CommandError> {
        let holds_back = self.holds_back_locally(payload)?;
        let Some(local) = &mut self.local else { return Err(CommandError::UnknownRpc) };
        if !local.cancelled.is_empty() && local.cancelled.remove(&(pair.number(), id)) {
            local.serving -= 1;
            return Err(CommandError::UnknownRpc);
        }
        if holds_back {
            local.serving -= 1;
            let what = What::Reply { id, payload: std::mem::take(payload) };
            self.hold_back_locally(Message { pair: pair.clone(), what });
            return Ok(());
        }
        match pair.send(id, payload.slices()) {
            Ok(_) => {
                local.serving -= 1;
                Ok(())
            }
            Err(error) => {
                local.serving -= u64::from(matches!(error, SendError::Disconnected(_)));
                Err(command_error(error))
            }
        }
    }

    /// Lets a request go without an answer.
    pub(crate) fn abandon_locally(&mut self, pair: &Pair, id: u64, why: Refusal) {
        let Some(local) = &mut self.local else { return };
        local.serving -= 1;
        if !local.cancelled.remove(&(pair.number(), id)) {
            let _ = pair.refuse(id, why);
        }
    }
}
