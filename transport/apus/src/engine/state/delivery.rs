//! Delivery: puts the protocol's events where threads of the application find them.
//!
//! Keeps ENGINE-2 of [`engine`](crate::engine): a message is queued when it is complete, before a
//! waiter is notified.

use super::calls::{Calls, Key};
use super::client_watches::ClientWatches;
use super::inbox::Inbox;
use super::message::{IncomingRequest, Origin};
use super::network::Network;
use super::observation::Observation;
use super::polling::Polling;
use super::room::RoomWaiters;
use crate::engine::handoff::WakeList;
use apus_proto::{Event, RpcError};
use bytes::Bytes;

/// Groups of state that a delivery may change.
pub(crate) struct Delivery<'a> {
    pub(crate) network: &'a mut Network,
    pub(crate) calls: &'a mut Calls,
    pub(crate) inbox: &'a mut Inbox,
    pub(crate) room: &'a mut RoomWaiters,
    pub(crate) polling: &'a mut Polling,
    pub(crate) wakes: &'a mut WakeList,
    pub(crate) observation: &'a mut Observation,
    pub(crate) watches: &'a mut ClientWatches,
}

impl Delivery<'_> {
    /// Delivers up to `quota` events of the protocol. Returns whether the quota ended that.
    #[must_use]
    pub(crate) fn deliver(&mut self, mut quota: usize) -> bool {
        while let Some(event) = self.network.transport_mut().poll_event() {
            match event {
                Event::Request { rpc, from, payload } => {
                    let origin = Origin::Network(rpc);
                    let rpc = self.observation.tracer.request_delivered(rpc);
                    self.push_request(IncomingRequest { origin, from, payload, rpc, turn: 0 });
                }
                Event::Response { cookie, payload, .. } => self.end_call(cookie, Ok(payload)),
                Event::Failed { cookie, error, .. } => self.end_call(cookie, Err(error)),
                Event::NewPeer(peer) => self.network.renew_packet_limit(peer),
                Event::Room => self.notify_room(),
                Event::ClientGone { rpc } => self.watches.request_ended(Origin::Network(rpc)),
                // A later protocol may have more events.
                _ => {}
            }
            quota -= 1;
            if quota == 0 {
                return true;
            }
        }
        self.observation.tracer.all_delivered();
        false
    }

    /// Makes a complete request visible.
    pub(crate) fn push_request(&mut self, request: IncomingRequest) {
        self.inbox.push_request(request, self.network.transport_mut());
    }

    /// Ends the call with this cookie: its caller is notified, or its completion is queued.
    pub(crate) fn end_call(&mut self, cookie: u64, result: Result<Bytes, RpcError>) {
        let key = Key::from_cookie(cookie);
        let (by, counters) = (self.inbox.producer(), &mut self.observation.counters);
        if let Some(ended) = self.calls.end(key, result, by, self.wakes, counters) {
            self.inbox.push_completion(ended);
        }
    }

    /// Notifies the waiters for room to send.
    pub(crate) fn notify_room(&mut self) {
        self.room.notify(self.polling, self.wakes);
    }
}
