//! Results that waiting threads and tasks take: requests, completions, responses, room, and the
//! acknowledgement of all messages.
//!
//! [`wait_target`](crate::engine::wait_target) has a type for each. A message that is taken frees
//! its bytes in the receive buffer ([`Core::count_taken`]) and, if it ends a call, the call's
//! slot.

use super::root::Core;
use crate::engine::handoff::{Delivered, ThreadToken, Waiter};
use crate::engine::state::{EndedCall, IncomingRequest, Key, Response, Taken, WaitKind};
use std::sync::Arc;

impl Core {
    /// Takes a request for a thread that was not notified.
    pub(in crate::engine) fn take_request(&mut self) -> Option<Delivered<IncomingRequest>> {
        let request = self.inbox.take_request()?;
        self.request_taken(&request.message);
        Some(request)
    }

    /// Takes the request that is reserved for a notified thread; `None` if the endpoint is closed.
    pub(in crate::engine) fn take_reserved_request(
        &mut self,
    ) -> Option<Delivered<IncomingRequest>> {
        if self.is_closed() {
            return None;
        }
        let request = self.inbox.take_reserved_request();
        self.request_taken(&request.message);
        Some(request)
    }

    fn request_taken(&mut self, request: &IncomingRequest) {
        if request.turn > 0 {
            self.network.transport_mut().request_taken(request.from, request.turn);
        }
        let resumes = self.inbox.request_taken(self.time.now());
        self.polling.request_check_if(resumes);
    }

    /// Gives the request that is reserved for a notified thread to another one.
    pub(in crate::engine) fn give_back_request(&mut self) {
        if !self.is_closed() {
            self.inbox.give_back_request(&mut self.wakes);
        }
    }

    /// Adds a waiter for a request.
    pub(in crate::engine) fn enlist_for_request(&mut self, waiter: Arc<Waiter>) {
        self.inbox.enlist_for_request(waiter);
    }

    /// Removes a waiter for a request that was not notified.
    pub(in crate::engine) fn delist_for_request(&mut self, waiter: &Arc<Waiter>) {
        self.inbox.delist_for_request(waiter);
    }

    /// Takes a completion for a thread that was not notified.
    #[inline]
    pub(in crate::engine) fn take_completion(&mut self) -> Option<Delivered<EndedCall>> {
        let completion = self.inbox.take_completion()?;
        self.call_ended();
        Some(completion)
    }

    /// Takes the completion that is reserved for a notified thread. A closed endpoint has no
    /// reservations.
    pub(in crate::engine) fn take_reserved_completion(&mut self) -> Option<Delivered<EndedCall>> {
        if self.is_closed() {
            return self.take_completion();
        }
        let completion = self.inbox.take_reserved_completion();
        self.call_ended();
        Some(completion)
    }

    /// Gives the completion that is reserved for a notified thread to another one.
    pub(in crate::engine) fn give_back_completion(&mut self) {
        if !self.is_closed() {
            self.inbox.give_back_completion(&mut self.wakes);
        }
    }

    /// Adds a waiter for a completion.
    pub(in crate::engine) fn enlist_for_completion(&mut self, waiter: Arc<Waiter>) {
        self.inbox.enlist_for_completion(waiter);
    }

    /// Removes a waiter for a completion that was not notified.
    pub(in crate::engine) fn delist_for_completion(&mut self, waiter: &Arc<Waiter>) {
        self.inbox.delist_for_completion(waiter);
    }

    /// Takes the response to a call whose caller waits for it, if it is there.
    pub(in crate::engine) fn take_response(&mut self, key: Key) -> Option<Delivered<Response>> {
        let response = self.calls.take(key)?;
        self.call_ended();
        Some(response)
    }

    /// Sets the waiter for the response to a call.
    pub(in crate::engine) fn enlist_for_response(&mut self, key: Key, waiter: Arc<Waiter>) {
        self.calls.enlist(key, waiter);
    }

    /// Removes the waiter for the response to a call.
    pub(in crate::engine) fn delist_for_response(&mut self, key: Key) {
        self.calls.delist(key);
    }

    fn call_ended(&mut self) {
        self.room.call_ended(&mut self.polling, &mut self.wakes);
    }

    /// Returns the number of times that there was room after a command was rejected for lack of it.
    pub(crate) const fn room_changes(&self) -> u64 {
        self.room.changes()
    }

    /// Adds a waiter for room to send.
    pub(in crate::engine) fn enlist_for_room(&mut self, waiter: Arc<Waiter>) {
        self.room.enlist(waiter);
    }

    /// Removes a waiter for room to send that was not notified.
    pub(in crate::engine) fn delist_for_room(&mut self, waiter: &Arc<Waiter>) {
        self.room.delist(waiter);
    }

    /// Adds a waiter for the acknowledgement of everything that was sent.
    pub(in crate::engine) fn enlist_for_drain(&mut self, waiter: Arc<Waiter>) {
        self.drain.enlist(waiter);
    }

    /// Removes a waiter for the acknowledgement of everything that was not notified.
    pub(in crate::engine) fn delist_for_drain(&mut self, waiter: &Arc<Waiter>) {
        self.drain.delist(waiter);
    }

    /// Returns the thread that handles packets.
    pub(in crate::engine) const fn producer(&self) -> ThreadToken {
        self.inbox.producer()
    }

    /// Counts a message that the application takes, and frees it in the receive buffer.
    pub(in crate::engine) fn count_taken(&mut self, taken: Taken, kind: WaitKind) {
        if let Taken::Message(bytes) = taken {
            self.network.transport_mut().payload_consumed(bytes);
        }
        self.observation.count_taken(taken, kind);
    }
}
