//! The protocol state of an endpoint: its RPCs and peers, their timers, the clock and the
//! configuration.
//!
//! One of the three groups of state that handlers take: this one,
//! [`Inbound`](crate::inbound::Inbound) and [`Output`](crate::tx::Output). A handler takes a group
//! by `&mut` if it may change it, and by `&` if it only reads it; `tests/permissions.rs` lists the
//! groups that each file may change.

use crate::config::Config;
use crate::peer::PeerId;
use crate::rpc::{RpcKey, Tables};
use crate::time::Instant;
use crate::timer::Timers;

/// RPCs and peers, and when something is due about them.
#[derive(Debug)]
pub(crate) struct Protocol {
    /// The latest time passed to the endpoint; it never decreases.
    pub(crate) now: Instant,
    /// The configuration of the endpoint, which never changes.
    pub(crate) config: Config,
    /// Live RPCs and known peers.
    pub(crate) tables: Tables,
    /// The timers of RPCs and peers.
    pub(crate) timers: Timers,
}

impl Protocol {
    /// Returns the time since a packet for `rpc` was last received, in nanoseconds, measured up to
    /// the last instant at which the socket was known to be empty.
    pub(crate) fn silence(&self, rpc: RpcKey) -> u64 {
        self.timers.arrears.read_up_to(self.now).since(self.tables.rpcs[rpc].heard)
    }

    /// Returns for how long a peer may stay silent after a question, in nanoseconds.
    pub(crate) fn resend_interval(&self, peer: PeerId) -> u64 {
        let bounds = self.timers.resend_interval;
        let least = bounds.least(self.config.resend_interval_usecs());
        self.tables.peers[peer].rtt.rto(least, bounds.most())
    }

    /// Returns the silence after which DATA of `rpc` counts as lost (TIME-3), in nanoseconds. It
    /// doubles with each BUSY, and is short if the system has dropped packets since the peer was
    /// last heard (TIME-14).
    pub(crate) fn rto(&self, rpc: RpcKey) -> u64 {
        let entry = &self.tables.rpcs[rpc];
        let rtt = &self.tables.peers[entry.peer].rtt;
        let interval = self.timers.resend_interval;
        if self.timers.arrears.overflowed_since(entry.heard) {
            return interval.in_flight(&self.config, 0).estimate(rtt);
        }
        let (least, most) = (interval.least(self.config.resend_usecs()), interval.most());
        let rto = rtt.rto(least, most);
        rto.saturating_mul(1 << entry.put_off.min(16)).min(most.max(least))
    }
}
