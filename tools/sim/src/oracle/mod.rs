//! How fast would messages be if one scheduler knew them all?
//!
//! The SRPT-Oracle of SIGCOMM 2018 (figures 12 and 13): a central scheduler knows every message of the
//! fabric and its length as soon as it is handed over, and acts without delay. Whenever a message comes or
//! has been sent, it looks at all of them, the one with the fewest remaining bytes first and the older of
//! two equals; a message transmits at the full rate of the host's link if neither its sender's uplink nor
//! its receiver's downlink is taken by one before it. To preempt costs nothing and happens between any two
//! bits.
//!
//! What it leaves out, all in its favour:
//!
//! - grants, acknowledgements and everything else that is not data: only the packets of messages take time,
//!   with their headers, and those of responses if messages are answered in kind ([`Answer::Echo`]);
//! - the core: switches between racks never limit, even where [`Topology::core_capacity`] is below 1, and
//!   nothing ever queues in a switch;
//! - loss.
//!
//! It is the paper's yardstick: none of its transports is below it for the smaller half of the messages or in
//! the mean over messages. It is not a bound for each size. The shortest remaining message first is the best
//! mean for one link; for many, no such rule is known. And the oracle has no buffers: a message waits at its
//! sender until the receiver's link is free, where in a fabric it can wait behind the switch and leave its
//! sender's link to the next one. So a good transport can be below the oracle, as Homa is in the paper for
//! messages of 3 KB of W2 (published numbers A.4: median and p99 are 1.77 and 5.03, the oracle's 2.40 and
//! 6.37).
//!
//! # Invariants
//!
//! - **O1** Nothing is rounded before the end: what remains is counted in picoseconds of the host's link.
//! - **O2** A message that never waits takes exactly [`Topology::ideal`]; one that waits takes as much
//!   longer as it waited, rounded up to the nanosecond. So none is faster than its ideal.
//! - **O3** The order of outcomes depends on nothing but the messages.

mod schedule;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::{BTreeMap, VecDeque};

use apus_workload::PacketOverhead;

use self::schedule::{Picos, Schedule};
use crate::host::Answer;
use crate::message::{HostId, Message, Outcome};
use crate::network::Network;
use crate::topology::Topology;
use apus_workload::time::Nanos;

/// The omniscient scheduler, in place of a fabric.
///
/// Time in it ends after 200 days, where picoseconds no longer fit.
#[derive(Debug)]
pub struct Oracle {
    topology: Topology,
    packets: PacketOverhead,
    answer: Answer,
    /// What is not completely sent.
    schedule: Schedule<(Course, Trip)>,
    /// What is completely sent and has not arrived, by the time when it will and its number.
    underway: BTreeMap<(Nanos, u32), Trip>,
    /// What has not been told yet.
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

/// How a trip goes if nothing is in its way.
#[derive(Clone, Copy, Debug)]
struct Course {
    /// When its last bit leaves the sender.
    sent: Picos,
    /// When it has arrived; never before it is sent.
    arrived: Nanos,
}

/// Picoseconds of so many nanoseconds.
const fn picos(nanos: Nanos) -> Picos {
    nanos.saturating_mul(1_000)
}

impl Oracle {
    /// An idle fabric; messages travel in packets of this format. A response is handed over at the moment
    /// when the message has arrived.
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

    /// Lets everything happen that happens up to and including `until`.
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

    /// Something is to be sent from now on.
    fn begin(&mut self, now: Nanos, trip: Trip) {
        let Trip { from, to, bytes, .. } = trip;
        let work = self.topology.host_rate.picos(self.packets.wire_bytes(bytes));
        // Where links are so fast that their times round to 0, the ideal may be below the sending time.
        let ideal = self.topology.ideal(from, to, bytes, &self.packets).max(work.div_ceil(1_000));
        let course = Course { sent: picos(now) + work, arrived: now + ideal };
        self.schedule.add(picos(now), from, to, work, (course, trip));
    }

    /// The next one is completely sent.
    fn end_sending(&mut self) {
        let Some((now, (course, trip))) = self.schedule.complete() else { return };
        let waited = (now - course.sent).div_ceil(1_000);
        self.underway.insert((course.arrived + waited, trip.number), trip);
    }

    fn arrive(&mut self, now: Nanos, trip: Trip) {
        let Trip { number, from, to, .. } = trip;
        if !trip.is_response {
            self.outcomes.push_back((now, Outcome::Delivered(number)));
        }
        if !trip.is_response && self.answer == Answer::Echo {
            self.begin(now, Trip { from: to, to: from, is_response: true, ..trip });
        } else {
            self.outcomes.push_back((now, Outcome::Done(number)));
        }
    }
}

impl Network for Oracle {
    /// # Panics
    ///
    /// If a host is not in the fabric, or a message empty.
    fn submit(&mut self, message: &Message) {
        let Message { number, from, to, bytes, at } = *message;
        self.run(at);
        self.begin(at, Trip { number, from, to, bytes, is_response: false });
    }

    /// The sender of a message that needs no answer knows everything, too: the message is done when it is
    /// delivered.
    fn advance(&mut self, until: Nanos, tell: &mut dyn FnMut(Nanos, Outcome)) {
        self.run(until);
        for (at, outcome) in self.outcomes.drain(..) {
            tell(at, outcome);
        }
    }
}
