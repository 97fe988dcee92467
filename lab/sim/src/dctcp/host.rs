//! A host whose transport is DCTCP.
//!
//! It has one connection to each host that it exchanges messages with. All connections are
//! established from the start.
//!
//! # Invariants
//!
//! - DCTCP-HOST-1: A connection whose ACK is due is in `acks`, one that can send in the fair queue.
//! - DCTCP-HOST-2: The earliest deadline of each connection, or an earlier one, is in `deadlines`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use foldhash::fast::FixedState;

use super::config::Config;
use super::connection::Connection;
use super::connection_info::ConnectionInfo;
use super::fair_queue::FairQueue;
use super::segment::Segment;
use crate::host::Host;
use crate::message::{HostId, Message, Outcome};
use crate::packet::Packet;
use apus_workload::time::Nanos;

/// Priority of all packets: DCTCP does not use priorities.
const PRIORITY: u8 = 0;

/// A connection and its membership in lists.
#[derive(Debug)]
struct Entry {
    connection: Connection,
    /// Whether it is among the connections whose ACK is due.
    in_acks: bool,
    /// Its deadline in `deadlines`.
    scheduled: Option<Nanos>,
}

/// A host whose transport is DCTCP.
#[derive(Debug)]
pub struct DctcpHost {
    id: HostId,
    config: Config,
    /// Never iterated.
    by_peer: HashMap<HostId, u32, FixedState>,
    entries: Vec<Entry>,
    queue: FairQueue,
    /// Connections whose ACK is due.
    acks: VecDeque<u32>,
    deadlines: BinaryHeap<Reverse<(Nanos, u32)>>,
    outcomes: VecDeque<Outcome>,
}

impl DctcpHost {
    /// Returns a host without any history.
    #[must_use]
    pub fn new(id: HostId, config: Config) -> Self {
        Self {
            id,
            config,
            by_peer: HashMap::with_hasher(FixedState::with_seed(0)),
            entries: Vec::new(),
            queue: FairQueue::default(),
            acks: VecDeque::new(),
            deadlines: BinaryHeap::new(),
            outcomes: VecDeque::new(),
        }
    }

    /// Returns the state of the sending half of the connection to a host; `None` if no message or
    /// packet has been exchanged.
    #[must_use]
    pub fn connection(&self, peer: HostId) -> Option<ConnectionInfo> {
        let index = *self.by_peer.get(&peer)?;
        Some(self.entries[index as usize].connection.info())
    }

    /// Returns the sending halves of all connections, in the order of their first use.
    pub fn connections(&self) -> impl Iterator<Item = (HostId, ConnectionInfo)> {
        self.entries.iter().map(|entry| (entry.connection.peer, entry.connection.info()))
    }

    fn index(&mut self, peer: HostId) -> u32 {
        *self.by_peer.entry(peer).or_insert_with(|| {
            let connection = Connection::new(&self.config, peer);
            self.entries.push(Entry { connection, in_acks: false, scheduled: None });
            self.queue.add();
            self.entries.len() as u32 - 1
        })
    }

    /// Restores DCTCP-HOST-1 and DCTCP-HOST-2 after a connection has changed.
    fn settle(&mut self, now: Nanos, index: u32) {
        let entry = &mut self.entries[index as usize];
        if entry.connection.ack_is_due() && !entry.in_acks {
            entry.in_acks = true;
            self.acks.push_back(index);
        }
        if entry.connection.can_send() {
            self.queue.activate(index, now);
        }
        if let Some(deadline) = entry.connection.deadline()
            && entry.scheduled.is_none_or(|scheduled| deadline < scheduled)
        {
            entry.scheduled = Some(deadline);
            self.deadlines.push(Reverse((deadline, index)));
        }
    }

    /// Returns the connection that may send data next.
    fn next_flow(&mut self, now: Nanos) -> Option<u32> {
        let entries = &self.entries;
        self.queue.next(now, |index| entries[index as usize].connection.can_send())
    }

    /// Writes a pure ACK if an ACK is due that the next data segment cannot carry. Returns its
    /// connection.
    fn transmit_ack(&mut self, now: Nanos, segment: &mut Segment) -> Option<u32> {
        while let Some(index) = self.acks.front().copied() {
            let entry = &self.entries[index as usize];
            let due = entry.connection.ack_is_due();
            let piggybacks = due && entry.connection.ack_may_piggyback();
            if piggybacks && self.next_flow(now) == Some(index) {
                return None;
            }
            let entry = &mut self.entries[index as usize];
            if due {
                entry.connection.transmit_ack(segment);
                return Some(index);
            }
            self.acks.pop_front();
            entry.in_acks = false;
        }
        None
    }

    /// Writes the next data segment, if any. Returns its connection.
    fn transmit_data(&mut self, now: Nanos, segment: &mut Segment) -> Option<u32> {
        let index = self.next_flow(now)?;
        let connection = &mut self.entries[index as usize].connection;
        if !connection.transmit(&self.config, now, segment) {
            return None;
        }
        self.queue.sent(index, segment.wire_bytes());
        Some(index)
    }
}

impl Host for DctcpHost {
    type Body = Segment;

    fn submit(&mut self, now: Nanos, message: &Message) {
        let index = self.index(message.to);
        self.entries[index as usize].connection.submit(message.number, message.bytes);
        self.settle(now, index);
    }

    fn receive(&mut self, now: Nanos, packet: &Packet, body: &Segment) {
        let index = self.index(packet.from);
        let connection = &mut self.entries[index as usize].connection;
        connection.receive(&self.config, now, body, packet.marked, &mut self.outcomes);
        self.settle(now, index);
    }

    fn transmit(&mut self, now: Nanos, packet: &mut Packet, body: &mut Segment) -> bool {
        let ack = self.transmit_ack(now, body);
        let Some(index) = ack.or_else(|| self.transmit_data(now, body)) else {
            return false;
        };
        self.settle(now, index);
        packet.from = self.id;
        packet.to = self.entries[index as usize].connection.peer;
        packet.wire_bytes = body.wire_bytes();
        packet.payload = body.len;
        packet.priority = PRIORITY;
        // Pure ACKs and retransmissions as well, as in Linux under DCTCP (`tcp_ca_needs_ecn`).
        packet.ecn_capable = true;
        packet.marked = false;
        true
    }

    fn next_timeout(&self) -> Option<Nanos> {
        self.deadlines.peek().map(|Reverse((at, _))| *at)
    }

    fn handle_timeout(&mut self, now: Nanos) {
        while let Some(Reverse((at, index))) = self.deadlines.peek().copied()
            && at <= now
        {
            self.deadlines.pop();
            let entry = &mut self.entries[index as usize];
            if entry.scheduled == Some(at) {
                entry.scheduled = None;
                entry.connection.on_timer(&self.config, now);
                self.settle(now, index);
            }
        }
    }

    fn poll_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    fn id(&self) -> HostId {
        self.id
    }
}
