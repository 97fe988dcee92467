//! Messages for the application, and the bound on their number.

use super::backlog::Backlog;
use super::message::{EndedCall, IncomingRequest};
use crate::engine::handoff::{
    Delivered, Handoff, MessageKind, StealRequest, ThreadToken, Waiter, WakeList,
};
use apus_proto::{Instant, Transport};
use apus_trace::{Event, recorder};
use std::sync::Arc;
use std::time::Duration;

/// Requests and completions that the application has not received, and the threads that wait for
/// them.
#[derive(Debug)]
pub(crate) struct Inbox {
    requests: Handoff<IncomingRequest>,
    completions: Handoff<EndedCall>,
    /// The bound on the number of requests.
    backlog: Backlog,
    /// Whether requests are counted by host and served in turns.
    has_turns: bool,
    /// The thread that handles packets.
    producer: ThreadToken,
    pace: Pace,
}

/// How fast the shard's own threads receive messages, by the last readings of the clock.
#[derive(Clone, Copy, Debug)]
struct Pace {
    last: Instant,
    quick: bool,
}

/// Number of waiting requests from which on hosts have turns. Chosen by us: the smallest bound of the
/// backlog; fewer requests are served at once, in the order of their arrival.
const TURNS_FROM: usize = 16;

/// Longest time between two messages of a thread that is expected to receive the next one itself.
/// Chosen by us: waking another thread takes about as long.
const QUICK: Duration = Duration::from_micros(20);

impl Inbox {
    /// Returns an empty inbox.
    pub(crate) fn new(backlog: Backlog) -> Self {
        Self {
            requests: Handoff::default(),
            completions: Handoff::default(),
            backlog,
            has_turns: false,
            producer: ThreadToken::current(),
            pace: Pace { last: Instant::ZERO, quick: false },
        }
    }

    /// Notes that a thread of this shard has received a message.
    pub(crate) fn note_own_take(&mut self, now: Instant) {
        self.pace = Pace { last: now, quick: now - self.pace.last <= QUICK };
    }

    /// Returns the number of messages that other shards may steal. `left`: a thread of this shard
    /// has left with a message or is about to. If it has been quick, it will return soon; if it
    /// does not, the background poller takes its place.
    pub(crate) fn surplus(&self, kind: MessageKind, left: bool) -> usize {
        let surplus = match kind {
            MessageKind::Request => self.requests.unreserved(),
            MessageKind::Completion => self.completions.unreserved(),
        };
        if left && self.pace.quick { 0 } else { surplus }
    }

    /// Notes whether the leader waits for messages of this kind.
    pub(crate) const fn set_leader_waits(&mut self, kind: MessageKind, waits: bool) {
        match kind {
            MessageKind::Request => self.requests.set_leader_waits(waits),
            MessageKind::Completion => self.completions.set_leader_waits(waits),
        }
    }

    /// Asks a thread that waits for messages of this kind to steal from other shards.
    pub(crate) fn request_steal(
        &mut self,
        kind: MessageKind,
        wakes: &mut WakeList,
    ) -> StealRequest {
        match kind {
            MessageKind::Request => self.requests.request_steal(wakes),
            MessageKind::Completion => self.completions.request_steal(wakes),
        }
    }

    /// Returns whether a thread that waits for messages of this kind is asked to steal from other
    /// shards.
    pub(crate) const fn is_steal_requested(&self, kind: MessageKind) -> bool {
        match kind {
            MessageKind::Request => self.requests.is_steal_requested(),
            MessageKind::Completion => self.completions.is_steal_requested(),
        }
    }

    /// Takes the request to steal messages of this kind, if there is one.
    pub(crate) const fn take_steal_request(&mut self, kind: MessageKind) -> bool {
        match kind {
            MessageKind::Request => self.requests.take_steal_request(),
            MessageKind::Completion => self.completions.take_steal_request(),
        }
    }

    /// The calling thread handles packets from now on.
    pub(crate) fn set_producer(&mut self) {
        self.producer = ThreadToken::current();
    }

    /// Returns the thread that handles packets.
    pub(crate) const fn producer(&self) -> ThreadToken {
        self.producer
    }

    /// Makes a complete request visible. If many wait, hosts have turns, which `transport` counts,
    /// until the queue is empty (CAP-16).
    #[inline]
    pub(crate) fn push_request(&mut self, request: IncomingRequest, transport: &mut Transport) {
        if self.has_turns || self.requests.unreserved() >= TURNS_FROM {
            self.push_in_turn(request, transport);
        } else {
            self.requests.push(request, self.producer);
        }
    }

    // Rare; inlined, it would take registers from every request.
    #[inline(never)]
    fn push_in_turn(&mut self, request: IncomingRequest, transport: &mut Transport) {
        if !std::mem::replace(&mut self.has_turns, true) {
            for request in self.requests.unreserved_mut() {
                request.turn = transport.request_waits(request.from);
            }
            self.requests.sort_unreserved_by_key(|request| request.turn);
        }
        let turn = transport.request_waits(request.from);
        let request = IncomingRequest { turn, ..request };
        self.requests.push_by_key(request, self.producer, |request| request.turn);
    }

    /// Makes the completion of a call visible.
    pub(crate) fn push_completion(&mut self, completion: EndedCall) {
        self.completions.push(completion, self.producer);
    }

    /// Takes a request for a thread that was not notified.
    pub(crate) fn take_request(&mut self) -> Option<Delivered<IncomingRequest>> {
        self.requests.take()
    }

    /// Takes the request that is reserved for a notified thread.
    pub(crate) fn take_reserved_request(&mut self) -> Delivered<IncomingRequest> {
        self.requests.take_reserved()
    }

    /// Gives a reserved request to another waiter.
    pub(crate) fn give_back_request(&mut self, wakes: &mut WakeList) {
        self.requests.give_back(wakes);
    }

    /// Adds a waiter for a request.
    pub(crate) fn enlist_for_request(&mut self, waiter: Arc<Waiter>) {
        self.requests.enlist(waiter);
    }

    /// Removes a waiter for a request that was not notified.
    pub(crate) fn delist_for_request(&mut self, waiter: &Arc<Waiter>) {
        self.requests.delist(waiter);
    }

    /// Takes a completion for a thread that was not notified.
    pub(crate) fn take_completion(&mut self) -> Option<Delivered<EndedCall>> {
        self.completions.take()
    }

    /// Takes the completion that is reserved for a notified thread.
    pub(crate) fn take_reserved_completion(&mut self) -> Delivered<EndedCall> {
        self.completions.take_reserved()
    }

    /// Gives a reserved completion to another waiter.
    pub(crate) fn give_back_completion(&mut self, wakes: &mut WakeList) {
        self.completions.give_back(wakes);
    }

    /// Adds a waiter for a completion.
    pub(crate) fn enlist_for_completion(&mut self, waiter: Arc<Waiter>) {
        self.completions.enlist(waiter);
    }

    /// Removes a waiter for a completion that was not notified.
    pub(crate) fn delist_for_completion(&mut self, waiter: &Arc<Waiter>) {
        self.completions.delist(waiter);
    }

    /// Notifies waiters that have a message, the newest first. Returns the number of handoffs.
    pub(crate) fn assign(&mut self, wakes: &mut WakeList) -> u64 {
        self.requests.assign(wakes) + self.completions.assign(wakes)
    }

    /// Notifies all waiters: the endpoint is closed.
    pub(crate) fn dismiss(&mut self, wakes: &mut WakeList) {
        self.requests.dismiss(wakes);
        self.completions.dismiss(wakes);
    }

    /// Removes all requests.
    pub(crate) fn drain_requests(&mut self) -> Vec<IncomingRequest> {
        self.requests.drain().collect()
    }

    /// Returns the number of requests that the application has not received.
    pub(crate) fn waiting_requests(&self) -> usize {
        self.requests.len()
    }

    /// Returns the number of completions that the application has not received.
    pub(crate) fn waiting_completions(&self) -> usize {
        self.completions.len()
    }

    /// Returns the number of further requests that may be accepted, and of all that may wait.
    pub(crate) fn room(&mut self, now: Instant) -> (usize, usize) {
        self.backlog.room(self.requests.len(), now)
    }

    /// Notes that the network is polled.
    pub(crate) fn note_poll(&mut self, now: Instant) {
        self.backlog.note_poll(now);
    }

    /// Records a poll from `began` until `now` for a thread that had found a request.
    pub(crate) fn note_poll_end(&mut self, began: Instant, now: Instant) {
        self.backlog.note_poll_end(began, now);
    }

    /// Returns whether a thread that requests a message must poll the network first; then it counts
    /// as polled.
    pub(crate) fn take_poll_due(&mut self, now: Instant) -> bool {
        let is_due = self.backlog.is_poll_due(now);
        if is_due {
            self.backlog.note_poll(now);
        }
        is_due
    }

    /// Ends a pass of the loop, which has emptied the socket if `drained`: receiving may have to
    /// stop.
    pub(crate) fn end_pass(&mut self, drained: bool, now: Instant) {
        let stops = self.backlog.stops();
        self.backlog.pass(self.requests.len(), drained, now);
        if self.backlog.stops() > stops {
            let waiting = self.requests.len() as u32;
            recorder::record(Event::FeedbackStop, waiting, 0);
        }
    }

    /// Notes that the application has received a request. Returns whether receiving, which had
    /// stopped, resumes.
    pub(crate) fn request_taken(&mut self, now: Instant) -> bool {
        self.has_turns &= self.requests.len() > 0;
        self.backlog.request_taken(self.requests.len(), now)
    }

    /// Returns whether replies are held back until the network is polled (BACKLOG-3).
    pub(crate) fn holds_replies(&self) -> bool {
        self.backlog.holds_replies(self.requests.len())
    }

    /// Returns until when receiving is stopped, if it is.
    pub(crate) const fn stopped_until(&self) -> Option<Instant> {
        self.backlog.stopped_until()
    }

    /// Returns the number of times that receiving has stopped.
    pub(crate) const fn stops(&self) -> u64 {
        self.backlog.stops()
    }
}

#[cfg(test)]
#[cfg(not(apus_loom))]
mod tests {
    use super::super::message::Origin;
    use super::*;
    use apus_proto::Config;
    use bytes::Bytes;

    fn request(host: u8, number: u64) -> IncomingRequest {
        IncomingRequest {
            origin: Origin::Local(0, number),
            from: ([10, 0, 0, host], 1).into(),
            payload: Bytes::new(),
            rpc: None,
            turn: 0,
        }
    }

    /// Takes all requests. Returns their hosts.
    fn take_all(inbox: &mut Inbox, transport: &mut Transport) -> Vec<u8> {
        let mut hosts = Vec::new();
        while let Some(Delivered { message, .. }) = inbox.take_request() {
            if message.turn > 0 {
                transport.request_taken(message.from, message.turn);
            }
            inbox.request_taken(Instant::ZERO);
            let std::net::SocketAddr::V4(from) = message.from else { panic!("of IPv4") };
            hosts.push(from.ip().octets()[3]);
        }
        hosts
    }

    /// CAP-16: a flood of one host delays no other by more than one request.
    #[test]
    fn hosts_have_turns_when_many_requests_wait() {
        let mut transport = Transport::new(Config::default(), 1, 1);
        let mut inbox = Inbox::new(Backlog::new(Backlog::MAX_QUEUEING));
        (0..100).for_each(|number| inbox.push_request(request(1, number), &mut transport));
        inbox.push_request(request(2, 0), &mut transport);
        inbox.push_request(request(3, 0), &mut transport);
        inbox.push_request(request(2, 1), &mut transport);
        let hosts = take_all(&mut inbox, &mut transport);
        assert_eq!(hosts[..6], [1, 2, 3, 1, 2, 1]);
        assert_eq!(hosts.len(), 103);
        // Few requests are served in the order of their arrival.
        let few = [1, 1, 1, 2, 1];
        few.iter().for_each(|host| inbox.push_request(request(*host, 0), &mut transport));
        assert_eq!(take_all(&mut inbox, &mut transport), few);
    }
}
