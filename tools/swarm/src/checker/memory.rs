//! Is nothing left when everything has ended?
//!
//! Requirements RPC-6 and TIME-13, invariant A4 of the core: the only checker that reads the core's own
//! gauges, because what is kept for nobody cannot be seen from outside.

use apus_proto::Live;

use crate::violation::{Kind, Violation};
use apus_sim::message::HostId;

/// Whether a transport keeps nothing but peers.
pub(crate) fn is_clear(live: &Live) -> bool {
    let mut nothing = Live::default();
    nothing.peers = live.peers;
    *live == nothing
}

/// Checks that a transport keeps nothing but peers; and not even those, if they should be forgotten.
pub(crate) fn check(host: HostId, live: &Live, peers_too: bool) -> Result<(), Violation> {
    let holds = is_clear(live) && (live.peers == 0 || !peers_too);
    Violation::unless(holds, Kind::Memory, None, || {
        let except = if peers_too { "peers too" } else { "peers aside" };
        (format!("nothing lives at host {host}, {except}"), format!("{live:?}"))
    })
}

/// Checks that a module keeps nothing on behalf of hosts that live: they have acknowledged everything, and have
/// answered each NEED_ACK (8.2 item 10).
pub(crate) fn check_module(host: HostId, held: &[String]) -> Result<(), Violation> {
    Violation::unless(held.is_empty(), Kind::Memory, None, || {
        let expected = format!("the module of host {host} keeps nothing for hosts that live");
        (expected, format!("{} RPCs, the first is {:?}", held.len(), held.first()))
    })
}
