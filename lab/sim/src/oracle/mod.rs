//! Omniscient scheduler: message latency under a single scheduler with global knowledge.
//!
//! The SRPT-Oracle of SIGCOMM 2018 (figures 12 and 13): a central scheduler sees every message of
//! the fabric and its length as soon as it is submitted, and acts without delay. Whenever a message
//! arrives or has been sent, it considers all messages, the fewest remaining bytes first and the
//! older of two equals first. A message transmits at the full rate of the host's link if neither
//! its sender's uplink nor its receiver's downlink is taken by an earlier message. Preemption is
//! free and happens between any two bits.
//!
//! Omissions, all in its favour:
//!
//! - grants, acknowledgements and everything else that is not data: only the packets of messages
//!   take time, with their headers, and the packets of responses if messages are echoed
//!   ([`Answer::Echo`]);
//! - the core: switches between racks never limit, even where [`Topology::core_capacity`] is below
//!   1, and packets never queue in switches;
//! - loss.
//!
//! It is the paper's reference: no transport of the paper is faster for the smaller half of the
//! messages or in the mean over messages. It is not a bound for each size. Shortest remaining
//! message first is optimal in the mean for one link; for several links no such rule is known. In
//! addition, the oracle has no buffers: a message waits at its sender until the receiver's link is
//! free, whereas in a fabric it may wait behind the switch and leave its sender's link to the next
//! message. A good transport can therefore be faster than the oracle, as Homa is in the paper for
//! messages of 3 KB of W2 (docs/reference/papers.md, *Slowdown by message size*: median and p99 are
//! 1.77 and 5.03, the oracle's 2.40 and 6.37).
//!
//! # Invariants
//!
//! - **ORACLE-1**: Only results are rounded: remaining work is counted in picoseconds of the host's
//!   link.
//! - **ORACLE-2**: A message that never waits takes exactly [`Topology::ideal`]. A message that
//!   waits takes longer by its waiting time, rounded up to the nanosecond. No message is faster
//!   than its ideal.
//! - **ORACLE-3**: The order of outcomes depends only on the messages.

mod rank;
mod schedule;
#[cfg(test)]
mod tests;
mod wait_queues;

use std::collections::{BTreeMap, VecDeque};

use apus_workload::PacketOverhead;

use self::rank::Picos;
use self::schedule::Schedule;
use crate::host::Answer;
use crate::message::{HostId, Message, Outcome};
use crate::network::Network;
use crate::topology::Topology;
use apus_workload::time::Nanos;

/// The omniscient scheduler, used in place of a fabric.
///
/// Its time ends after 200 days, when picoseconds overflow.
#[derive(Debug)]
pub struct Oracle {
    topology: Topology,
    packets: PacketOverhead,
    answer: Answer,
    /// Trips that have not been sent completely.
    schedule: Schedule<(Course, Trip)>,
    /// Trips that have been sent completely and have not arrived, by arrival time and number.
    underway: BTreeMap<(Nanos, u32), Trip>,
    /// Outcomes that have not been reported.
    outcomes: VecDeque<(Nanos, Outcome)>,
}

/// A message, or the response to it.
#[derive(Clone, Copy, Debug)]
struct Trip {
    /// Number of the message.
    number: u32,
    from: HostId,
    to: HostId,
    bytes: u32,
    is_response: bool,
}

/// Course of a trip without waiting.
#[derive(Clone, Copy, Debug)]
struct Course {
    /// Time when the last bit leaves the sender.
    sent: Picos,
    /// Time of arrival; never before the last bit is sent.
    arrived: Nanos,
}

/// Converts nanoseconds to picoseconds.
const fn picos(nanos: Nanos) -> Picos {
    nanos.saturating_mul(1_000)
}

impl Oracle {
    /// Returns an idle fabric whose messages travel in packets of this format. A response is
    /// submitted the moment the message has arrived.
    #[must_use]
    pub fn new(topology: &Topology, packets: PacketOverhead, answer: Answer) -> Self {
        Self {
            topology: *topology,
            packets,
            answer,
            schedule: Schedule::new(topology.shape.hosts()),
            underway: BTreeMap::new(),
            outcomes: VecDeque::new(),
        }
    }

    /// Simulates up to and including `until`.
    fn run(&mut self, until: Nanos) {
        loop {
            let arrival = self.underway.first_key_value().map_or(Nanos::MAX, |(&(at, _), _)| at);
            let end = self.schedule.next_end().filter(|&end| end <= picos(arrival.min(until)));
            if end.is_some() {
                self.end_sending();
            } else if arrival <= until
                && let Some(((at, _), trip)) = self.underway.pop_first()
            {
                self.arrive(at, trip);
            } else {
                return;
            }
        }
    }

    /// Starts a trip.
    fn begin(&mut self, now: Nanos, trip: Trip) {
        let Trip { from, to, bytes, .. } = trip;
        let work = self.topology.host_rate.picos(self.packets.wire_bytes(bytes));
        // Where links are so fast that times round to 0, the ideal may be below the sending time.
        let ideal = self.topology.ideal(from, to, bytes, &self.packets).max(work.div_ceil(1_000));
        let course = Course { sent: picos(now) + work, arrived: now + ideal };
        self.schedule.add(picos(now), from, to, work, (course, trip));
    }

    /// Ends the transmission of the next trip.
    fn end_sending(&mut self) {
        let Some((now, (course, trip))) = self.schedule.complete() else { return };
        let waited = (now - course.sent).div_ceil(1_000);
        self.underway.insert((course.arrived + waited, trip.number), trip);
    }

    fn arrive(&mut self, now: Nanos, trip: Trip) {
        let Trip { number, from, to, bytes, .. } = trip;
        if !trip.is_response {
            self.outcomes.push_back((now, Outcome::Delivered(number)));
        }
        if !trip.is_response && self.answer.is_awaited() {
            let bytes = self.answer.bytes(bytes);
            self.begin(now, Trip { number, from: to, to: from, bytes, is_response: true });
        } else {
            self.outcomes.push_back((now, Outcome::Done(number)));
        }
    }
}

impl Network for Oracle {
    /// # Panics
    ///
    /// A host is not in the fabric, or the message is empty.
    fn submit(&mut self, message: &Message) {
        let Message { number, from, to, bytes, at } = *message;
        self.run(at);
        self.begin(at, Trip { number, from, to, bytes, is_response: false });
    }

    /// The sender of a message without a response is omniscient as well: the message is done when
    /// it is delivered.
    fn advance(&mut self, until: Nanos, report: &mut dyn FnMut(Nanos, Outcome)) {
        self.run(until);
        for (at, outcome) in self.outcomes.drain(..) {
            report(at, outcome);
        }
    }
}
