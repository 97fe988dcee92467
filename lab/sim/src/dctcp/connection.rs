//! One end of a connection.
//!
//! A sender and a receiver share segments: the segments of one carry the acknowledgements of the
//! other.

use std::collections::VecDeque;

use super::acks::Acks;
use super::config::Config;
use super::connection_info::ConnectionInfo;
use super::reassembly::{Arrival, Reassembly};
use super::segment::{Ack, Segment};
use super::sender::Sender;
use crate::message::{HostId, Outcome};
use apus_workload::time::Nanos;

/// One end of the connection between two hosts.
#[derive(Debug)]
pub(super) struct Connection {
    /// The host at the other end.
    pub(super) peer: HostId,
    sender: Sender,
    reassembly: Reassembly,
    acks: Acks,
}

impl Connection {
    pub(super) fn new(config: &Config, peer: HostId) -> Self {
        Self {
            peer,
            sender: Sender::new(config),
            reassembly: Reassembly::default(),
            acks: Acks::default(),
        }
    }

    /// Appends a message to the stream.
    pub(super) fn submit(&mut self, number: u32, bytes: u32) {
        self.sender.submit(number, bytes);
    }

    /// Handles an arriving segment, marked or not.
    pub(super) fn receive(
        &mut self,
        config: &Config,
        now: Nanos,
        segment: &Segment,
        marked: bool,
        outcomes: &mut VecDeque<Outcome>,
    ) {
        self.sender.on_ack(config, now, &segment.ack);
        while let Some(number) = self.sender.poll_done() {
            outcomes.push_back(Outcome::Done(number));
        }
        if segment.len > 0 {
            self.accept_data(config, now, segment, marked);
            while let Some(number) = self.reassembly.poll_delivered() {
                outcomes.push_back(Outcome::Delivered(number));
            }
        }
    }

    fn accept_data(&mut self, config: &Config, now: Nanos, segment: &Segment, marked: bool) {
        let duplicate = self.reassembly.fit(&segment.range()) == Arrival::Duplicate;
        if !duplicate && self.acks.changes(marked) {
            let old = self.acks.is_pending().then(|| self.current_ack());
            self.acks.change(old);
        }
        let arrival = self.reassembly.insert(segment);
        let progress = (segment.is_pushed(), self.reassembly.next());
        let timeout = self.sender.rtt.timeout(config);
        self.acks.on_data(config, now, arrival, progress, timeout);
    }

    /// Returns the ACK of everything that has arrived.
    fn current_ack(&mut self) -> Ack {
        Ack {
            upto: self.reassembly.next(),
            echo: self.acks.echo(),
            sack: self.reassembly.take_blocks(),
        }
    }

    /// Returns whether an ACK must be sent at once.
    pub(super) fn ack_is_due(&self) -> bool {
        self.acks.is_due()
    }

    /// Returns whether the due ACK would be complete on a segment with data. Selective ACKs have no
    /// room there.
    pub(super) fn ack_may_piggyback(&self) -> bool {
        self.acks.may_piggyback() && !self.reassembly.has_blocks()
    }

    /// Writes a segment without data.
    pub(super) fn transmit_ack(&mut self, segment: &mut Segment) {
        segment.start = 0;
        segment.len = 0;
        segment.ends.clear();
        segment.ack = self.acks.take_before().unwrap_or_else(|| {
            let ack = self.current_ack();
            self.acks.on_sent(ack.upto);
            if self.reassembly.has_duplicates() {
                self.acks.owe();
            }
            ack
        });
    }

    /// Returns whether a segment with data may be sent now.
    pub(super) fn can_send(&self) -> bool {
        self.sender.can_send()
    }

    /// Writes the next segment with data, if one may be sent now.
    pub(super) fn transmit(&mut self, config: &Config, now: Nanos, segment: &mut Segment) -> bool {
        if !self.sender.transmit(config, now, segment) {
            return false;
        }
        self.acks.on_data_sent(config, now);
        let upto = self.reassembly.next();
        segment.ack = Ack { upto, echo: self.acks.echo(), sack: None };
        if self.ack_may_piggyback() {
            self.acks.on_sent(upto);
        }
        true
    }

    /// Returns when [`Connection::on_timer`] must be called.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        match (self.sender.deadline(), self.acks.deadline()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Handles timers that are due.
    pub(super) fn on_timer(&mut self, config: &Config, now: Nanos) {
        self.sender.on_timer(config, now);
        self.acks.on_timer(now);
    }

    pub(super) fn info(&self) -> ConnectionInfo {
        ConnectionInfo {
            window: self.sender.window.size(),
            threshold: self.sender.window.threshold(),
            alpha: self.sender.fraction.alpha(),
            round_trip: self.sender.rtt.smoothed(),
            unacknowledged: self.sender.unacknowledged(),
            counters: self.sender.counters,
        }
    }
}
