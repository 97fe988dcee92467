//! Counters: the fates of packets.

use serde::{Deserialize, Serialize};

use crate::livelock::frame::Frame;
use crate::livelock::tap::Tap;
use apus_testbed::error::Error;

/// The fates of packets, and the pauses of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::livelock) struct Counters {
    /// Packets taken from the interface.
    pub(in crate::livelock) received: u64,
    /// Packets sent.
    pub(in crate::livelock) sent: u64,
    /// Dropped: malformed.
    pub(in crate::livelock) malformed: u64,
    /// Dropped: wrong header checksum.
    pub(in crate::livelock) checksum: u64,
    /// Dropped: time to live expired.
    pub(in crate::livelock) expired: u64,
    /// Dropped: no route.
    pub(in crate::livelock) no_route: u64,
    /// Dropped: the queue between input and IP was full.
    pub(in crate::livelock) ip_queue_full: u64,
    /// Dropped: the queue of the interface was full.
    pub(in crate::livelock) output_queue_full: u64,
    /// Dropped: the filter's queue was full.
    pub(in crate::livelock) filter_queue_full: u64,
    /// Refused by the filter.
    pub(in crate::livelock) refused: u64,
    /// Dropped: the system did not take them.
    pub(in crate::livelock) not_sent: u64,
    /// Turns that a quota ended.
    pub(in crate::livelock) quota_exhaustions: u64,
    /// Number of times that the filter's queue stopped reception.
    pub(in crate::livelock) feedback_stops: u64,
    /// Number of these stops that lasted until the time limit.
    pub(in crate::livelock) feedback_timeouts: u64,
    /// Periods in which the share of the core was used up.
    pub(in crate::livelock) inhibitions: u64,
}

impl Counters {
    /// Adds the counts of another part.
    pub(super) fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.received, other.received),
            (&mut self.sent, other.sent),
            (&mut self.malformed, other.malformed),
            (&mut self.checksum, other.checksum),
            (&mut self.expired, other.expired),
            (&mut self.no_route, other.no_route),
            (&mut self.ip_queue_full, other.ip_queue_full),
            (&mut self.output_queue_full, other.output_queue_full),
            (&mut self.filter_queue_full, other.filter_queue_full),
            (&mut self.refused, other.refused),
            (&mut self.not_sent, other.not_sent),
            (&mut self.quota_exhaustions, other.quota_exhaustions),
            (&mut self.feedback_stops, other.feedback_stops),
            (&mut self.feedback_timeouts, other.feedback_timeouts),
            (&mut self.inhibitions, other.inhibitions),
        ];
        for (sum, more) in pairs {
            *sum += more;
        }
    }

    /// Returns the packets that the router dropped after it had taken them, by reason, without the
    /// filter's decisions.
    pub(in crate::livelock) const fn thrown_away(&self) -> [(&'static str, u64); 4] {
        [
            ("the IP queue was full", self.ip_queue_full),
            ("the output queue was full", self.output_queue_full),
            ("the filter's queue was full", self.filter_queue_full),
            ("the system took no more", self.not_sent),
        ]
    }
}

/// Sends a packet, and counts the result.
pub(super) fn send(output: &Tap, frame: &Frame, counters: &mut Counters) -> Result<(), Error> {
    let count = if output.send(frame)? { &mut counters.sent } else { &mut counters.not_sent };
    *count += 1;
    Ok(())
}
