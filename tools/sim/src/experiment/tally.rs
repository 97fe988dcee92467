//! Which messages are alive, and how long did those take that are over?
//!
//! Messages count if they are *delivered* in the window of measurement, whenever they were handed over after
//! the greetings. In a steady state that is the same as counting those handed over in the window, and it
//! spares the wait for the last of them, which is half of a run with W4.

use std::collections::VecDeque;
use std::ops::Range;

use apus_workload::{PacketOverhead, SizeDistribution};

use super::backlog::Backlog;
use super::slowdown::{Slowdown, Slowdowns};
use crate::host::Answer;
use crate::message::{HostId, Message, Outcome};
use crate::topology::Topology;
use apus_workload::time::Nanos;

/// The messages of a run. Memory: those between the oldest that lives and the newest.
#[derive(Debug)]
pub(super) struct Tally {
    topology: Topology,
    packets: PacketOverhead,
    answer: Answer,
    /// Numbers of the messages that are handed over in the window.
    window: Range<u32>,
    /// Whether the window has begun.
    counts: bool,
    /// Messages with smaller numbers are greetings.
    greetings: u32,
    /// By number, from `first` on; `None` if it is over.
    alive: VecDeque<Option<Message>>,
    first: u32,
    pub(super) backlog: Backlog,
    slowdowns: Slowdowns,
    pub(super) failed: u64,
    pub(super) bytes: u64,
    /// Bytes on links of all messages that have been delivered, with their responses.
    pub(super) wire_bytes: u64,
}

impl Tally {
    pub(super) fn new(
        topology: Topology,
        packets: PacketOverhead,
        answer: Answer,
        sizes: &SizeDistribution,
        greetings: u32,
        window: Range<u32>,
    ) -> Self {
        Self {
            topology,
            packets,
            answer,
            alive: VecDeque::new(),
            first: 0,
            counts: false,
            greetings,
            backlog: Backlog::new(window.len() as u32),
            slowdowns: Slowdowns::new(sizes),
            failed: 0,
            bytes: 0,
            wire_bytes: 0,
            window,
        }
    }

    /// A message is handed over; numbers follow each other.
    pub(super) fn submitted(&mut self, message: &Message) {
        let position =
            self.window.contains(&message.number).then(|| message.number - self.window.start);
        self.backlog.arrived(message.bytes, position);
        if self.alive.is_empty() {
            self.first = message.number;
        }
        debug_assert_eq!(self.first + self.alive.len() as u32, message.number, "numbers follow");
        self.alive.push_back(Some(*message));
    }

    /// Something has become of a message.
    pub(super) fn tell(&mut self, now: Nanos, outcome: Outcome) {
        match (outcome, self.answer) {
            (Outcome::Delivered(number), Answer::Nothing)
            | (Outcome::Done(number), Answer::Echo) => {
                let Some(message) = self.end(number) else { return };
                let ways = 1 + u64::from(self.answer == Answer::Echo);
                self.wire_bytes += ways * self.packets.wire_bytes(message.bytes);
                if self.counts && number >= self.greetings {
                    self.bytes += u64::from(message.bytes);
                    let took = (now - message.at) as f64;
                    self.slowdowns.record(message.bytes, took / self.unloaded(&message) as f64);
                }
            }
            (Outcome::Failed(number), _) => {
                // One whose request has been delivered is over as far as it counts.
                let ended = self.end(number).is_some();
                self.failed += u64::from(ended && self.counts);
            }
            (Outcome::Done(_), Answer::Nothing) | (Outcome::Delivered(_), Answer::Echo) => {}
        }
    }

    /// The window begins.
    pub(super) const fn begin(&mut self) {
        self.counts = true;
    }

    /// What came out.
    pub(super) fn summary(&mut self) -> Slowdown {
        self.slowdowns.summary()
    }

    /// The message, if it is alive; it is over.
    fn end(&mut self, number: u32) -> Option<Message> {
        let message = self.alive.get_mut(number.checked_sub(self.first)? as usize)?.take()?;
        self.backlog.delivered(message.bytes);
        while let Some(None) = self.alive.front() {
            self.alive.pop_front();
            self.first += 1;
        }
        Some(message)
    }

    /// The best possible time.
    fn unloaded(&self, message: &Message) -> Nanos {
        let way =
            |from: HostId, to: HostId| self.topology.ideal(from, to, message.bytes, &self.packets);
        let there = way(message.from, message.to);
        match self.answer {
            Answer::Nothing => there,
            Answer::Echo => there + way(message.to, message.from),
        }
    }
}
