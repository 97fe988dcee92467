//! How long a peer's silence is normal.

use crate::config::Config;
use crate::limits::QUEUED_BYTES;
use crate::time::USEC;

/// RESENDs without an answer before an RPC is aborted, whatever the clock says: a process that was
/// stopped for a second must not blame its peers.
pub(crate) const MIN_ASKS: u32 = 3;

/// However long round-trip times are measured, `timeout_usecs` is this many times the silence that is normal, so that
/// the RESENDs fit into it.
const TIMES_PATIENT: u64 = MIN_ASKS as u64 + 1;

/// Bounds on the silence that is normal, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Time for which the link is busy with what may be queued before a packet.
    queueing: u64,
    /// No silence longer than this is normal.
    most: u64,
}

impl Patience {
    /// The bounds on a link that carries `link_mbps` Mbit/s.
    pub(crate) fn new(config: &Config, link_mbps: u64) -> Self {
        let most = config.timeout_usecs() * USEC / TIMES_PATIENT;
        let queueing = QUEUED_BYTES * 8_000 / link_mbps;
        Self { queueing: queueing.min(most), most }
    }

    /// Silence that is normal whatever the round-trip time, where the configuration says `usecs` microseconds: at least
    /// the time for which the link is busy with what may be queued before a packet.
    pub(crate) fn least(self, usecs: u64) -> u64 {
        (usecs * USEC).max(self.queueing)
    }

    /// Silence that is not normal, however long round-trip times are measured.
    pub(crate) const fn most(self) -> u64 {
        self.most
    }

    /// Time between two checks of an RPC that waits: half of the shortest silence that is not normal, so that a RESEND
    /// is late by half of it at most.
    pub(crate) fn check_period(self, config: &Config) -> u64 {
        self.least(config.resend_usecs()) / 2
    }
}
