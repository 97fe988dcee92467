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
//! - grants, acknowledgements and everything else that is not data: only DATA packets with their headers
//!   take time;
//! - the core: switches between racks never limit, even where [`Topology::core_capacity`] is below 1, and
//!   nothing ever queues in a switch;
//! - loss.
//!
//! It is the yardstick of the paper: no transport is expected below it. It is not a theorem. For one link
//! the shortest remaining message first is the best that can be done for the mean; for many links no such
//! rule is known, and the rule does nothing for a long message that others overtake.
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

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use apus_workload::PacketOverhead;

use self::schedule::{Picos, Schedule};
use crate::message::{Message, Outcome};
use crate::network::Network;
use crate::time::Nanos;
use crate::topology::Topology;

/// The omniscient scheduler, in place of a fabric.
///
/// Time in it ends after 200 days, where picoseconds no longer fit.
#[derive(Debug)]
pub struct Oracle {
    topology: Topology,
    packets: PacketOverhead,
    schedule: Schedule<Course>,
    /// What has been sent and not yet been told: when it arrives, and its number.
    underway: BinaryHeap<Reverse<(Nanos, u32)>>,
}

/// How a message fares if nothing is in its way.
#[derive(Clone, Copy, Debug)]
struct Course {
    /// Its number.
    number: u32,
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
    /// An idle fabric; messages travel in packets of this format.
    #[must_use]
    pub fn new(topology: &Topology, packets: PacketOverhead) -> Self {
        Self {
            topology: *topology,
            packets,
            schedule: Schedule::new(topology.shape.hosts()),
            underway: BinaryHeap::new(),
        }
    }

    /// Ends the transmission of all messages that are completely sent by now.
    fn complete_until(&mut self, now: Picos) {
        while self.schedule.next_end().is_some_and(|end| end <= now) {
            let (end, course) = self.schedule.complete().expect("there is a next end");
            let waited = (end - course.sent).div_ceil(1_000);
            self.underway.push(Reverse((course.arrived + waited, course.number)));
        }
    }
}

impl Network for Oracle {
    /// # Panics
    ///
    /// If a host is not in the fabric, or a message empty.
    fn submit(&mut self, message: &Message) {
        let now = picos(message.at);
        self.complete_until(now);
        let work = self.topology.host_rate.picos(self.packets.wire_bytes(message.bytes));
        let Message { number, from, to, bytes, at } = *message;
        // Where links are so fast that their times round to 0, the ideal may be below the sending time.
        let ideal = self.topology.ideal(from, to, bytes, &self.packets).max(work.div_ceil(1_000));
        let course = Course { number, sent: now + work, arrived: at + ideal };
        self.schedule.add(now, from, to, work, course);
    }

    /// Nobody is told of a message's end any later than of its arrival: the sender, too, knows everything.
    fn advance(&mut self, until: Nanos, tell: &mut dyn FnMut(Nanos, Outcome)) {
        self.complete_until(picos(until));
        while let Some(&Reverse((at, number))) = self.underway.peek()
            && at <= until
        {
            self.underway.pop();
            tell(at, Outcome::Delivered(number));
            tell(at, Outcome::Done(number));
        }
    }
}
