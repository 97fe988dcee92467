//! Memory checker: no state is left when everything has ended.
//!
//! Requirements RPC-6 and TIME-13, invariant CORE-4. This is the only checker that reads the core's gauges,
//! because leaked state is invisible from outside.

use apus_proto::Live;

use crate::violation::{Violation, ViolationKind};
use apus_sim::message::HostId;

/// Returns whether a transport keeps no state but peers.
pub(crate) fn is_clear(live: &Live) -> bool {
    let mut nothing = Live::default();
    nothing.peers = live.peers;
    *live == nothing
}

/// Checks that a transport keeps no state but peers, and if `peers_too` is set, no peers either.
pub(crate) fn check(host: HostId, live: &Live, peers_too: bool) -> Result<(), Violation> {
    let holds = is_clear(live) && (live.peers == 0 || !peers_too);
    Violation::unless(holds, ViolationKind::Memory, None, || {
        let except = if peers_too { "peers included" } else { "except peers" };
        (format!("no state is left at host {host}, {except}"), format!("{live:?}"))
    })
}

/// Checks that a module keeps no state on behalf of hosts that are up: they have acknowledged everything, and answered
/// each NEED_ACK (8.2 item 10).
pub(crate) fn check_module(host: HostId, retained: &[String]) -> Result<(), Violation> {
    Violation::unless(retained.is_empty(), ViolationKind::Memory, None, || {
        let expected = format!("the module of host {host} keeps no state for hosts that are up");
        (expected, format!("{} RPCs, the first is {:?}", retained.len(), retained.first()))
    })
}
