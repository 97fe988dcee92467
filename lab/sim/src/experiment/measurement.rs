//! Measurement of the messages of a run.
//!
//! Messages count if they are *delivered* during the measurement, whenever they were submitted
//! after the first contacts. In a steady state this is equivalent to counting the messages
//! submitted during the measurement, and avoids waiting for the last of them, which would be half
//! of a run with W4.

use std::collections::VecDeque;
use std::ops::Range;

use apus_workload::{PacketOverhead, SizeDistribution};

use super::backlog::Backlog;
use super::slowdown::{Slowdown, Slowdowns};
use crate::host::Answer;
use crate::message::{Message, Outcome};
use crate::topology::Topology;
use apus_workload::time::Nanos;

/// A message that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Length in bytes.
    pub bytes: u32,
    /// Completion time; if receivers echo messages, until the response is complete.
    pub took: Nanos,
    /// Best possible completion time, on an idle fabric.
    pub best: Nanos,
}

/// Messages of a run. Memory is proportional to the messages between the oldest outstanding one and
/// the newest.
#[derive(Debug)]
pub(super) struct Measurement {
    topology: Topology,
    packets: PacketOverhead,
    answer: Answer,
    /// Numbers of the messages submitted during the measurement.
    window: Range<u32>,
    /// Whether the measurement has started.
    counts: bool,
    /// Messages with smaller numbers are first contacts.
    first_contacts: u32,
    /// Outstanding messages by number, from `first` on; `None` for messages that have ended.
    outstanding: VecDeque<Option<Message>>,
    first: u32,
    pub(super) backlog: Backlog,
    slowdowns: Slowdowns,
    pub(super) failed: u64,
    pub(super) bytes: u64,
    /// Bytes of the awaited responses.
    pub(super) response_bytes: u64,
    /// Bytes on links of all delivered messages and their responses.
    pub(super) wire_bytes: u64,
}

impl Measurement {
    pub(super) fn new(
        topology: Topology,
        packets: PacketOverhead,
        answer: Answer,
        sizes: &SizeDistribution,
        unscheduled: u32,
        first_contacts: u32,
        window: Range<u32>,
    ) -> Self {
        Self {
            topology,
            packets,
            answer,
            outstanding: VecDeque::new(),
            first: 0,
            counts: false,
            first_contacts,
            backlog: Backlog::new(window.len() as u32),
            slowdowns: Slowdowns::new(sizes, unscheduled),
            failed: 0,
            bytes: 0,
            response_bytes: 0,
            wire_bytes: 0,
            window,
        }
    }

    /// Records a submitted message. Numbers are consecutive.
    pub(super) fn submitted(&mut self, message: &Message) {
        let position =
            self.window.contains(&message.number).then(|| message.number - self.window.start);
        self.backlog.arrived(message.bytes, position);
        if self.outstanding.is_empty() {
            self.first = message.number;
        }
        debug_assert_eq!(
            self.first + self.outstanding.len() as u32,
            message.number,
            "numbers follow"
        );
        self.outstanding.push_back(Some(*message));
    }

    /// Records the outcome of a message. Returns the message if it is measured.
    pub(super) fn record_outcome(&mut self, now: Nanos, outcome: Outcome) -> Option<Completion> {
        match (outcome, self.answer.is_awaited()) {
            (Outcome::Delivered(number), false) | (Outcome::Done(number), true) => {
                let message = self.end(number)?;
                self.wire_bytes += self.packets.wire_bytes(message.bytes);
                if self.answer.is_awaited() {
                    self.wire_bytes += self.packets.wire_bytes(self.answer.bytes(message.bytes));
                }
                if !self.counts || number < self.first_contacts {
                    return None;
                }
                self.bytes += u64::from(message.bytes);
                if self.answer.is_awaited() {
                    self.response_bytes += u64::from(self.answer.bytes(message.bytes));
                }
                let (took, best) = (now - message.at, self.unloaded(&message));
                self.slowdowns.record(message.bytes, took as f64 / best as f64);
                Some(Completion { bytes: message.bytes, took, best })
            }
            (Outcome::Failed(number), _) => {
                // A message whose request was delivered has ended for the measurement.
                let ended = self.end(number).is_some();
                self.failed += u64::from(ended && self.counts);
                None
            }
            (Outcome::Done(_), false) | (Outcome::Delivered(_), true) => None,
        }
    }

    /// Starts the measurement.
    pub(super) const fn begin(&mut self) {
        self.counts = true;
    }

    /// Returns the slowdowns.
    pub(super) fn summary(&mut self) -> Slowdown {
        self.slowdowns.summary()
    }

    /// Removes an outstanding message.
    fn end(&mut self, number: u32) -> Option<Message> {
        let message = self.outstanding.get_mut(number.checked_sub(self.first)? as usize)?.take()?;
        self.backlog.delivered(message.bytes);
        while let Some(None) = self.outstanding.front() {
            self.outstanding.pop_front();
            self.first += 1;
        }
        Some(message)
    }

    /// Returns the best possible completion time.
    fn unloaded(&self, message: &Message) -> Nanos {
        let Message { from, to, bytes, .. } = *message;
        let there = self.topology.ideal(from, to, bytes, &self.packets);
        if !self.answer.is_awaited() {
            return there;
        }
        there + self.topology.ideal(to, from, self.answer.bytes(bytes), &self.packets)
    }
}
