//! Reasons for a freeze of the trace.

use serde::{Deserialize, Serialize};

/// Reason for which a trace was frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FreezeReason {
    /// A user requested it.
    Demand,
    /// An RPC took longer than the limit.
    SlowRpc,
    /// A request was sent again from its start, or a peer was restarted.
    Restart,
    /// A packet was lost, or so late that it was requested again.
    LostPacket,
    /// A peer has frozen its trace and requested the same here.
    Peer,
}

impl FreezeReason {
    /// Names of the reasons, in the order of their numbers in
    /// [`Event::Frozen`](crate::Event::Frozen).
    pub const NAMES: &[&str] = &["demand", "slow_rpc", "restart", "lost_packet", "peer"];

    /// Returns the name of the reason, as in file names and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}
