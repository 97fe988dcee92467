//! Probes: calls between the hosts that are up at the end, which must succeed.

use apus_sim::message::HostId;

use crate::call::{PlannedCall, ServerAction};
use crate::ends::Ends;
use crate::observation::CallId;
use crate::scenario::Scenario;

/// Lengths of the probes' requests in bytes: one unscheduled, and one that needs grants. The last
/// round is made when all other activity has ended.
const PROBES: [u32; 3] = [100, 300_000, 200];

/// Length of the only request of a module's life, in bytes.
const SINGLE: u32 = 100;

/// The calls that are probes.
#[derive(Clone, Copy)]
pub(super) struct Probes {
    /// The first probe.
    pub(super) first: CallId,
    /// Number of probes in a round; there is a round for each length, and two of single calls if
    /// there are modules.
    pub(super) of_a_round: CallId,
}

/// Rounds of single calls: each module makes one call in a life, and the same one in the next.
pub(super) const SINGLE_CALLS: [CallId; 2] = [PROBES.len() as CallId, PROBES.len() as CallId + 1];

impl Probes {
    /// Plans the probes between the ends of surviving hosts, after all calls of a scenario.
    pub(super) fn plan(scenario: &mut Scenario, surviving: &[HostId]) -> Self {
        let first = scenario.calls.len() as CallId;
        let pairs = pairs(surviving, scenario.ends());
        for length in PROBES {
            let length = length.min(scenario.config.max_message() as u32);
            scenario.calls.extend(pairs.iter().map(|(from, to)| probe(*from, *to, length)));
        }
        if !scenario.kernel_hosts.is_empty() {
            let single = scenario.calls.len() as CallId;
            let calls = pairs.iter().map(|(from, to)| probe(*from, *to, SINGLE));
            scenario.calls.extend(calls.clone());
            let again = calls.zip(single..);
            scenario.calls.extend(
                again.map(|(call, repeated)| PlannedCall { repeats: Some(repeated), ..call }),
            );
        }
        Self { first, of_a_round: pairs.len() as CallId }
    }
}

/// Returns the pairs of ends for probes: each calling end of a surviving host is in one pair.
fn pairs(surviving: &[HostId], ends: Ends) -> Vec<(HostId, HostId)> {
    let next = surviving.iter().cycle().skip(1);
    let pairs = surviving.iter().zip(next).flat_map(|(host, next)| {
        let callers = ends.callers_on(*host).zip(0..);
        callers.map(|(caller, number)| (caller, ends.server_on(*next, caller, number)))
    });
    pairs.collect()
}

const fn probe(from: HostId, to: HostId, request: u32) -> PlannedCall {
    PlannedCall {
        from,
        to,
        at: 0,
        request,
        response: request,
        service: 0,
        answer: ServerAction::Reply,
        cancel: None,
        deadline: None,
        // It is repeated if its server has restarted and has lost its client's session (AMO-3).
        idempotent: true,
        repeats: None,
    }
}
