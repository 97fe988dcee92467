//! State that other tables keep in an RPC, so that they need no separate table.
//!
//! Each struct belongs to one module, which is the only one that reads or writes its fields.

use crate::allowed::Allowed;
use crate::peer::HostId;

/// The granter's state of one incoming message (`grant`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GrantEntry {
    /// Missing bytes in its key among the candidates; `None` if it is not one.
    pub(crate) key: Option<u32>,
    /// The host of its sender; set before it counts.
    pub(crate) host: HostId,
    /// The bytes that it holds, as they are counted in the backlog.
    pub(crate) counted: Allowed,
    /// Its bytes in flight in the count of its sender, if marks of switches are used.
    pub(crate) on_way: Allowed,
    /// Bytes waiting at its sender, according to its newest packet; `None` if not reported.
    pub(crate) at_sender: Option<Allowed>,
    /// Its counted bytes in flight, if its sender reports its backlog.
    pub(crate) in_flight: InFlightShare,
    /// Whether it has needed a grant: only then it counts (HM `homa_grant.c`
    /// `homa_grant_init_rpc`).
    pub(crate) scheduled: bool,
    /// Whether data has arrived since the last run.
    pub(crate) touched: bool,
    /// Whether its sender is silent, or it makes no progress.
    pub(crate) silent: bool,
    /// Whether it waits for room in the receive budget.
    pub(crate) parked: bool,
}

/// Where the entry of an RPC is among those whose silence is watched (`timer::silence`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SilencePlace {
    /// The number of the tick; 0 if the RPC is not watched.
    pub(crate) tick: u64,
    /// The place of the entry in the tick.
    pub(crate) entry: usize,
}

/// The counted bytes in flight of one incoming message, if its sender reports its backlog
/// (`grant`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InFlightShare {
    /// Bytes in flight.
    pub(crate) bytes: Allowed,
    /// Whether the message needs further GRANTs.
    pub(crate) grantable: bool,
}
