//! The receiving half of a host: incomplete messages, and credit for their senders.
//!
//! Credit is for one packet at a time. It is given to the message with the fewest uncredited bytes
//! whose sender has less in flight than its limit, if the packet is then within the global limit
//! (SIRD-1), and not before the pace allows.

use std::collections::{BTreeSet, HashMap, VecDeque};

use foldhash::fast::FixedState;

use super::config::Config;
use super::segment::{Kind, Segment};
use super::sender_limit::SenderLimit;
use crate::message::{HostId, Outcome};
use apus_workload::time::Nanos;

/// An incomplete message.
#[derive(Clone, Copy, Debug)]
struct IncomingMessage {
    from: HostId,
    length: u32,
    /// Payload bytes that its sender may have sent.
    credited: u32,
    received: u32,
}

/// Receiver-side state of a sender.
#[derive(Clone, Copy, Debug)]
struct Sender {
    /// Bytes expected from it.
    in_flight: u64,
    limit: SenderLimit,
}

/// The receiving half of a host.
#[derive(Debug)]
pub(super) struct Incoming {
    /// Credit and responses.
    control: VecDeque<(HostId, Segment)>,
    /// Never iterated, as `senders`.
    messages: HashMap<u32, IncomingMessage, FixedState>,
    senders: HashMap<HostId, Sender, FixedState>,
    /// Messages that need more credit: uncredited payload bytes, number.
    waiting: BTreeSet<(u32, u32)>,
    /// Bytes expected from all senders.
    in_flight: u64,
    /// When the pace allows more credit.
    next_credit: Nanos,
    /// When to give credit that only the pace delays.
    timer: Option<Nanos>,
}

impl Incoming {
    pub(super) fn new() -> Self {
        Self {
            control: VecDeque::new(),
            messages: HashMap::with_hasher(FixedState::with_seed(0)),
            senders: HashMap::with_hasher(FixedState::with_seed(0)),
            waiting: BTreeSet::new(),
            in_flight: 0,
            next_credit: 0,
            timer: None,
        }
    }

    /// Returns when credit is due.
    pub(super) const fn timer(&self) -> Option<Nanos> {
        self.timer
    }

    /// Returns whether some message needs credit.
    pub(super) fn withholds(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the bytes expected from all senders.
    pub(super) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Returns the limit of a sender; `None` before its first packet.
    pub(super) fn sender_limit(&self, from: HostId) -> Option<u64> {
        self.senders.get(&from).map(|sender| sender.limit.bytes())
    }

    /// Returns the next credit or response with its receiver.
    pub(super) fn next(&mut self) -> Option<(HostId, Segment)> {
        self.control.pop_front()
    }

    /// Handles a request or data. Returns the message if it is now complete.
    pub(super) fn receive(
        &mut self,
        config: &Config,
        from: HostId,
        segment: &Segment,
        is_marked: bool,
    ) -> Option<Outcome> {
        self.register(config, from, segment);
        if segment.kind != Kind::Data {
            return None;
        }
        let wire_bytes = config.packets.wire_bytes(segment.bytes);
        let sender = self.senders.get_mut(&from).expect("registered");
        sender.limit.observe(config, is_marked, segment.is_busy);
        sender.in_flight -= wire_bytes;
        self.in_flight -= wire_bytes;
        let message = self.messages.get_mut(&segment.message).expect("registered");
        message.received += segment.bytes;
        if message.received < message.length {
            return None;
        }
        self.messages.remove(&segment.message);
        let response =
            Segment { kind: Kind::Response, message: segment.message, ..Segment::default() };
        self.control.push_back((from, response));
        Some(Outcome::Delivered(segment.message))
    }

    /// Creates the state of a message and of its sender, if this is their first packet. Packets may
    /// overtake each other, so each carries the length.
    fn register(&mut self, config: &Config, from: HostId, segment: &Segment) {
        if self.messages.contains_key(&segment.message) {
            return;
        }
        let length = segment.length;
        let credited = config.unscheduled(length);
        let expected = if credited > 0 { config.packets.wire_bytes(credited) } else { 0 };
        let new = || Sender { in_flight: 0, limit: SenderLimit::new(config) };
        self.senders.entry(from).or_insert_with(new).in_flight += expected;
        self.in_flight += expected;
        let message = IncomingMessage { from, length, credited, received: 0 };
        self.messages.insert(segment.message, message);
        if credited < length {
            self.waiting.insert((length - credited, segment.message));
        }
    }

    /// Gives all credit that limits and pace allow.
    pub(super) fn give_credit(&mut self, config: &Config, now: Nanos) {
        self.timer = None;
        while let Some((without, number)) = self.next_message(config) {
            if self.next_credit > now {
                self.timer = Some(self.next_credit);
                return;
            }
            let message = self.messages.get_mut(&number).expect("it waits");
            let bytes = config.payload(message.length, message.credited);
            message.credited += bytes;
            let wire_bytes = config.packets.wire_bytes(bytes);
            self.senders.get_mut(&message.from).expect("registered").in_flight += wire_bytes;
            self.in_flight += wire_bytes;
            let credit =
                Segment { kind: Kind::Credit, message: number, bytes, ..Segment::default() };
            self.control.push_back((message.from, credit));
            self.waiting.remove(&(without, number));
            if bytes < without {
                self.waiting.insert((without - bytes, number));
            }
            self.next_credit = now + config.pace(wire_bytes);
        }
    }

    /// Returns the message that gets credit next, with its uncredited bytes.
    fn next_message(&self, config: &Config) -> Option<(u32, u32)> {
        let has_room = |&&(without, number): &&(u32, u32)| {
            let sender = &self.senders[&self.messages[&number].from];
            let bytes = config.packets.wire_bytes(config.packets.payload.min(without));
            sender.in_flight < sender.limit.bytes() && self.in_flight + bytes <= config.global_limit
        };
        self.waiting.iter().find(has_room).copied()
    }
}
