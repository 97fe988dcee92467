//! Memory checker: no state is left when everything has ended.
//!
//! Requirements RPC-6 and TIME-13, invariant CORE-4. This is the only checker that reads the core's gauges,
//! because leaked state is invisible from outside.

use apus_proto::{Config, Live};

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

/// Checks that a transport keeps within its limits (CAP-1 to CAP-9, BAD-4).
pub(crate) fn check_limits(host: HostId, live: &Live, config: &Config) -> Result<(), Violation> {
    // Requests and responses have the send limit each.
    let limits = [
        ("client RPCs", live.client_rpcs, config.max_client_rpcs()),
        ("server RPCs", live.server_rpcs, config.max_server_rpcs()),
        ("peers", live.peers, config.max_peers()),
        ("bytes to send", live.send_bytes, 2 * config.max_send_bytes()),
        ("bytes to receive", live.receive_bytes, config.max_receive_bytes()),
    ];
    let exceeded = limits.into_iter().find(|(_, used, limit)| used > limit);
    exceeded.map_or(Ok(()), |(what, used, limit)| {
        Err(Violation {
            kind: ViolationKind::Memory,
            calls: Vec::new(),
            expected: format!("at most {limit} {what} at host {host}"),
            observed: used.to_string(),
        })
    })
}

/// Checks that a module keeps no state on behalf of hosts that are up: they have acknowledged everything, and answered
/// each NEED_ACK (Rules for peers, item 10).
pub(crate) fn check_module(host: HostId, retained: &[String]) -> Result<(), Violation> {
    Violation::unless(retained.is_empty(), ViolationKind::Memory, None, || {
        let expected = format!("the module of host {host} keeps no state for hosts that are up");
        (expected, format!("{} RPCs, the first is {:?}", retained.len(), retained.first()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_keeps_within_its_limits() {
        let config = Config::builder().max_peers(3).build().unwrap();
        let mut live = Live::default();
        (live.peers, live.receive_bytes) = (3, config.max_receive_bytes());
        assert_eq!(check_limits(0, &live, &config), Ok(()));
        live.peers = 4;
        let violation = check_limits(7, &live, &config).unwrap_err();
        assert_eq!(violation.expected, "at most 3 peers at host 7");
    }
}
