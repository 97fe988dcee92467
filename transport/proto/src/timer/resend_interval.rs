//! Bounds on the time without a response after which a RESEND is sent.

use crate::config::Config;
use crate::limits::QUEUED_BYTES;
use crate::peer::Rtt;
use crate::time::{Instant, USEC};

/// RESENDs without a response before an RPC is aborted, whatever the clock reads: a process that
/// was stopped for a second must not blame its peers.
pub(crate) const MIN_RESENDS: u32 = 3;

/// `timeout_usecs` divided by the longest resend interval, whatever round-trip times are measured:
/// the RESENDs fit into the timeout.
const TIMEOUT_INTERVALS: u64 = MIN_RESENDS as u64 + 1;

/// The shortest time for which bytes count as in flight is this fraction of the shortest resend
/// interval. Chosen by us: far longer than a round trip on an idle network, and short enough for a
/// response that the server made late in the interval: if it is lost, the first RESEND recovers it.
const IN_FLIGHT_PART: u64 = 8;

/// How long sent bytes are probably in flight, or in a queue (TIME-7).
///
/// A RESEND for such bytes was sent before they arrived: a round-trip time ago, or earlier if it
/// has waited in this endpoint's socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    /// Shortest and longest estimate of the way alone, in nanoseconds.
    least: u64,
    most: u64,
    /// Nanoseconds for which the packet being handled may have waited here.
    behind: u64,
}

impl InFlight {
    /// Returns whether bytes that left `nanos` nanoseconds ago to a peer with these round-trip
    /// times may still arrive.
    pub(crate) fn covers(self, rtt: &Rtt, nanos: u64) -> bool {
        nanos < self.estimate(rtt)
    }

    /// Returns when a packet that is handled at `now` arrived at the earliest.
    pub(crate) fn arrived(self, now: Instant) -> Instant {
        Instant::from_nanos(now.as_nanos().saturating_sub(self.behind))
    }

    /// Returns how long bytes to a peer with these round-trip times may be in flight, in
    /// nanoseconds.
    pub(crate) fn estimate(self, rtt: &Rtt) -> u64 {
        rtt.rto(self.least, self.most).saturating_add(self.behind)
    }
}

/// Bounds on the resend interval, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResendInterval {
    /// Link time of the longest queue before a packet.
    queueing: u64,
    /// Longest interval.
    most: u64,
}

impl ResendInterval {
    /// The bounds on a link that carries `link_mbps` Mbit/s.
    pub(crate) fn new(config: &Config, link_mbps: u64) -> Self {
        let most = config.timeout_usecs() * USEC / TIMEOUT_INTERVALS;
        let queueing = QUEUED_BYTES * 8_000 / link_mbps;
        Self { queueing: queueing.min(most), most }
    }

    /// Returns the shortest interval if the configuration has `usecs` microseconds. It is at least
    /// the link time of the longest queue before a packet.
    pub(crate) fn least(self, usecs: u64) -> u64 {
        (usecs * USEC).max(self.queueing)
    }

    /// Returns the longest interval, however long round-trip times are measured.
    pub(crate) const fn most(self) -> u64 {
        self.most
    }

    /// Returns how long sent bytes count as in flight, to an endpoint that is `behind` nanoseconds
    /// behind with reading.
    pub(crate) fn in_flight(self, config: &Config, behind: u64) -> InFlight {
        let least = self.least(config.resend_usecs()) / IN_FLIGHT_PART;
        InFlight { least, most: self.most, behind }
    }

    /// Returns how many nanoseconds an ack waits for DATA to carry it (RPC-18): half of the time
    /// after which a server asks for it, so that it need not ask an idle client.
    pub(crate) fn ack_delay(self, config: &Config) -> u64 {
        self.least(config.need_ack_usecs()) / 2
    }

    /// Returns the time between two checks of an RPC that waits: half of the shortest interval, so
    /// that a RESEND is late by half of it at most.
    pub(crate) fn check_period(self, config: &Config) -> u64 {
        self.least(config.resend_usecs()) / 2
    }
}
