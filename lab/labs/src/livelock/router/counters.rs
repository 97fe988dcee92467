//! Counters: what became of packets.

use serde::{Deserialize, Serialize};

use crate::livelock::frame::Frame;
use crate::livelock::tap::Tap;
use apus_testbed::error::Error;

/// The fates of packets, and the pauses of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::livelock) struct Counters {
    /// Packets that were taken from the interface.
    pub(in crate::livelock) received: u64,
    /// Packets that were sent.
    pub(in crate::livelock) sent: u64,
    /// Dropped, as they are malformed.
    pub(in crate::livelock) malformed: u64,
    /// Dropped, as their header's checksum is wrong.
    pub(in crate::livelock) checksum: u64,
    /// Dropped, as their time to live has expired.
    pub(in crate::livelock) expired: u64,
    /// Dropped, as no route leads there.
    pub(in crate::livelock) no_route: u64,
    /// Dropped, as the queue between input and IP was full.
    pub(in crate::livelock) ip_queue_full: u64,
    /// Dropped, as the queue of the interface was full.
    pub(in crate::livelock) output_queue_full: u64,
    /// Dropped, as the filter's queue was full.
    pub(in crate::livelock) filter_queue_full: u64,
    /// Refused by the filter.
    pub(in crate::livelock) refused: u64,
    /// The system did not take them.
    pub(in crate::livelock) not_sent: u64,
    /// Turns that ended because of a quota.
    pub(in crate::livelock) quota_exhaustions: u64,
    /// Times that the filter's queue stopped the receiving, and how often for longer than the time limit.
    pub(in crate::livelock) feedback_stops: u64,
    pub(in crate::livelock) feedback_timeouts: u64,
    /// Periods in which the share was used up.
    pub(in crate::livelock) inhibitions: u64,
}

/// Sends a packet, and counts whether that was possible.
pub(super) fn send(output: &Tap, frame: &Frame, counters: &mut Counters) -> Result<(), Error> {
    let count = if output.send(frame)? { &mut counters.sent } else { &mut counters.not_sent };
    *count += 1;
    Ok(())
}
