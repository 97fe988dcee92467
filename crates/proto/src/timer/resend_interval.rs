//! Bounds on the time without a response after which a RESEND is sent.

use crate::config::Config;
use crate::limits::QUEUED_BYTES;
use crate::time::USEC;

/// RESENDs without a response before an RPC is aborted, whatever the clock says: a process that was
/// stopped for a second must not blame its peers.
pub(crate) const MIN_RESENDS: u32 = 3;

/// `timeout_usecs` divided by the longest resend interval, whatever round-trip times are measured: the RESENDs fit
/// into the timeout.
const TIMEOUT_INTERVALS: u64 = MIN_RESENDS as u64 + 1;

/// Bounds on the resend interval, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResendInterval {
    /// Time for which the link is busy with what may be queued before a packet.
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

    /// Returns the shortest interval, where the configuration says `usecs` microseconds. It is at least the time for
    /// which the link is busy with what may be queued before a packet.
    pub(crate) fn least(self, usecs: u64) -> u64 {
        (usecs * USEC).max(self.queueing)
    }

    /// Returns the longest interval, however long round-trip times are measured.
    pub(crate) const fn most(self) -> u64 {
        self.most
    }

    /// Returns the time between two checks of an RPC that waits: half of the shortest interval, so that a RESEND is late by
    /// half of it at most.
    pub(crate) fn check_period(self, config: &Config) -> u64 {
        self.least(config.resend_usecs()) / 2
    }
}
