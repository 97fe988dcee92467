//! Memory checker: no state is left when all calls have ended, and a hostile host cannot reserve
//! memory by announcing messages.
//!
//! Requirements RPC-6, TIME-13 and CAP-8, invariant CORE-4. This is the only checker that reads the
//! core's gauges, because leaked state is invisible from outside.

use apus_proto::{Config, Live};

use crate::directory::Directory;
use crate::observation::{HostEvent, Observation};
use crate::scenario::max_unscheduled;
use crate::violation::{Violation, ViolationKind};
use apus_sim::message::HostId;

/// Bytes of the outstanding honest calls, by receiving host.
#[derive(Debug)]
pub(crate) struct ExpectedBytes {
    by_host: Vec<u64>,
    /// Whether each call is outstanding.
    calls: Vec<bool>,
}

impl ExpectedBytes {
    pub(crate) fn new(directory: &Directory) -> Self {
        let scenario = &directory.scenario;
        let by_host = vec![0; directory.ends.count() as usize];
        Self { by_host, calls: vec![false; scenario.calls.len()] }
    }

    /// Returns the bytes that a host may receive.
    pub(crate) fn at(&self, host: HostId) -> u64 {
        self.by_host[host as usize]
    }

    /// Records the start or the end of a call.
    pub(crate) fn observe(&mut self, directory: &Directory, observation: &Observation<'_>) {
        let (call, begins) = match observation.event {
            HostEvent::Called(call) => (call, true),
            HostEvent::Responded(call, _)
            | HostEvent::Failed(call, _)
            | HostEvent::Cancelled(call) => (call, false),
            _ => return,
        };
        if std::mem::replace(&mut self.calls[call as usize], begins) == begins {
            return;
        }
        let planned = directory.call(call);
        for (host, bytes) in [(planned.to, planned.request), (planned.from, planned.response)] {
            let sum = &mut self.by_host[host as usize];
            *sum = if begins { *sum + u64::from(bytes) } else { *sum - u64::from(bytes) };
        }
    }
}

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

/// Checks that a transport keeps within its limits (CAP-1 to CAP-9, BAD-4), and that a message of a
/// hostile host counts with the bytes that may arrive of it (CAP-8), while honest calls with
/// `expected` bytes are outstanding.
pub(crate) fn check_limits(
    host: HostId,
    live: &Live,
    config: &Config,
    expected: u64,
) -> Result<(), Violation> {
    // A quarter of the budget may be reserved ahead. The bytes granted to the hostile host are far
    // fewer.
    let announced = (live.client_rpcs + live.server_rpcs) * max_unscheduled(config);
    let may_arrive = config.max_receive_bytes() / 4 + announced + expected;
    // The send limit applies to requests and to responses separately.
    let limits = [
        ("client RPCs", live.client_rpcs, config.max_client_rpcs()),
        ("server RPCs", live.server_rpcs, config.max_server_rpcs()),
        ("peers", live.peers, config.max_peers()),
        ("bytes to send", live.send_bytes, 2 * config.max_send_bytes()),
        ("bytes to receive", live.receive_bytes, config.max_receive_bytes()),
        ("bytes to receive, which may arrive,", live.receive_bytes, may_arrive),
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

/// Checks that a module keeps no state on behalf of hosts that are up: they have acknowledged
/// everything, and answered each NEED_ACK (Rules for peers, item 10).
pub(crate) fn check_module(host: HostId, retained: &[String]) -> Result<(), Violation> {
    Violation::unless(retained.is_empty(), ViolationKind::Memory, None, || {
        let expected = format!("the module of host {host} keeps no state for hosts that are up");
        (expected, format!("{} RPCs, the first is {:?}", retained.len(), retained.first()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::tests::directory;

    #[test]
    fn a_transport_keeps_within_its_limits() {
        let config = Config::builder().max_peers(3).build().unwrap();
        let mut live = Live::default();
        (live.peers, live.receive_bytes) = (3, config.max_receive_bytes());
        assert_eq!(check_limits(0, &live, &config, config.max_receive_bytes()), Ok(()));
        live.peers = 4;
        let violation = check_limits(7, &live, &config, 0).unwrap_err();
        assert_eq!(violation.expected, "at most 3 peers at host 7");
    }

    #[test]
    fn a_transport_reserves_what_may_arrive() {
        let config = Config::builder().max_receive_bytes(400_000_000).build().unwrap();
        let mut live = Live::default();
        live.server_rpcs = 2;
        live.receive_bytes = 100_000_000 + 2 * max_unscheduled(&config) + 1_000;
        assert_eq!(check_limits(0, &live, &config, 1_000), Ok(()));
        let violation = check_limits(0, &live, &config, 999).unwrap_err();
        assert!(violation.expected.contains("may arrive"), "{violation:?}");
    }

    #[test]
    fn outstanding_calls_are_expected() {
        let config = Config::builder().build().unwrap();
        let directory = directory(&[(10, 20), (100, 200)], config);
        let mut expected = ExpectedBytes::new(&directory);
        let mut at_hosts = |event| {
            expected.observe(&directory, &Observation { at: 0, host: 0, event });
            (expected.at(0), expected.at(1))
        };
        assert_eq!(at_hosts(HostEvent::Called(0)), (20, 10));
        assert_eq!(at_hosts(HostEvent::Called(1)), (220, 110));
        assert_eq!(at_hosts(HostEvent::Responded(0, &[])), (200, 100));
        assert_eq!(at_hosts(HostEvent::Cancelled(0)), (200, 100));
    }
}
