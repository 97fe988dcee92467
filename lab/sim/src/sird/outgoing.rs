//! The sending half of a host: messages that have not been sent completely, and their credit.
//!
//! Requests leave first. Every second data packet belongs to the credited message with the fewest
//! remaining bytes; the other packets serve the receivers in turn, each with the shortest message
//! for that receiver: the paper shares half of the uplink fairly, so that each receiver is informed
//! of its sender's state.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;

use foldhash::fast::FixedState;

use super::config::Config;
use super::segment::{Kind, Segment};
use crate::message::{HostId, Message};

/// A message that has not been sent completely.
#[derive(Clone, Copy, Debug)]
struct OutgoingMessage {
    to: HostId,
    length: u32,
    sent: u32,
    /// End of the bytes that may be sent.
    credited: u32,
}

/// The sending half of a host.
#[derive(Debug)]
pub(super) struct Outgoing {
    requests: VecDeque<(HostId, Segment)>,
    /// Never iterated.
    messages: HashMap<u32, OutgoingMessage, FixedState>,
    /// Messages with unused credit of each receiver: remaining bytes, number. No set is empty.
    ready: BTreeMap<HostId, BTreeSet<(u32, u32)>>,
    /// Bytes of unused credit.
    credit: u64,
    /// Whether the next packet is for the next receiver in turn.
    in_turn: bool,
    /// Receiver of the last packet sent in turn.
    last: HostId,
}

impl Outgoing {
    pub(super) fn new() -> Self {
        Self {
            requests: VecDeque::new(),
            messages: HashMap::with_hasher(FixedState::with_seed(0)),
            ready: BTreeMap::new(),
            credit: 0,
            in_turn: false,
            last: 0,
        }
    }

    /// Returns the bytes of unused credit, unscheduled bytes included.
    pub(super) const fn unused_credit(&self) -> u64 {
        self.credit
    }

    /// Accepts a message from an application.
    pub(super) fn submit(&mut self, config: &Config, message: &Message) {
        let Message { number, to, bytes: length, .. } = *message;
        let credited = config.unscheduled(length);
        self.messages.insert(number, OutgoingMessage { to, length, sent: 0, credited });
        if credited == 0 {
            let request =
                Segment { kind: Kind::Request, message: number, length, ..Segment::default() };
            self.requests.push_back((to, request));
        } else {
            self.credit += config.packets.wire_bytes(credited);
            self.ready.entry(to).or_default().insert((length, number));
        }
    }

    /// Handles credit for one packet.
    pub(super) fn on_credit(&mut self, config: &Config, credit: &Segment) {
        let number = credit.message;
        let message = self.messages.get_mut(&number).expect("credit is for bytes that wait here");
        message.credited += credit.bytes;
        self.credit += config.packets.wire_bytes(credit.bytes);
        self.ready.entry(message.to).or_default().insert((message.length - message.sent, number));
    }

    /// Returns the next request with its receiver.
    pub(super) fn next_request(&mut self) -> Option<(HostId, Segment)> {
        self.requests.pop_front()
    }

    /// Returns the next packet with data, its receiver, and whether it is unscheduled.
    pub(super) fn next_data(&mut self, config: &Config) -> Option<(HostId, Segment, bool)> {
        let to = if self.in_turn { self.next_in_turn() } else { self.shortest() }?;
        if self.in_turn {
            self.last = to;
        }
        self.in_turn = !self.in_turn;
        let of_receiver = self.ready.get_mut(&to).expect("it was found there");
        let (remaining, number) = of_receiver.pop_first().expect("no set is empty");
        let message = self.messages.get_mut(&number).expect("it is ready");
        let bytes = config.payload(message.length, message.sent);
        message.sent += bytes;
        let OutgoingMessage { length, sent, credited, .. } = *message;
        if sent < credited {
            of_receiver.insert((remaining - bytes, number));
        } else if of_receiver.is_empty() {
            self.ready.remove(&to);
        }
        if sent == length {
            self.messages.remove(&number);
        }
        self.credit -= config.packets.wire_bytes(bytes);
        // A single message never waits for another message.
        let is_busy = self.credit > config.sender_threshold && self.messages.len() > 1;
        let segment = Segment { kind: Kind::Data, message: number, length, bytes, is_busy };
        Some((to, segment, sent <= config.unscheduled(length)))
    }

    /// Returns the receiver after the last one in turn.
    fn next_in_turn(&self) -> Option<HostId> {
        let after = (Bound::Excluded(self.last), Bound::Unbounded);
        self.ready.range(after).chain(self.ready.iter()).map(|(to, _)| *to).next()
    }

    /// Returns the receiver of the message with the fewest remaining bytes.
    fn shortest(&self) -> Option<HostId> {
        let firsts = self.ready.iter().map(|(to, all)| (all.first(), *to));
        firsts.min().map(|(_, to)| to)
    }
}
