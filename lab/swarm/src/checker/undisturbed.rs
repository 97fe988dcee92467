//! Undisturbed checker: a hostile host ends no honest call, and delays each only briefly.
//!
//! Only for scenarios with an [`Attack`](crate::attack::Attack). The same scenario is run with a
//! silent hostile host, and the two runs are compared call by call:
//!
//! - A call that succeeds without the attack succeeds with it.
//! - A call takes at most [`SLOWER`] times as long plus [`GRACE`] resend intervals. Rationale:
//!   packets of the attack use the link, and change the order of messages; a message of
//!   microseconds may wait for a message of a millisecond. The attacks of docs/attacks.md delayed
//!   calls by seconds.
//! - Goodput: all honest calls together keep at least [`GOODPUT`] tenths of their goodput, with the
//!   same grace.
//!
//! The hostile host may use up to a tenth of its link, so that the links of the others have room
//! for the load.

use crate::observation::{CallId, HostEvent, Observation};
use crate::scenario::Scenario;
use crate::violation::{Violation, ViolationKind};
use apus_workload::time::{MICROSECOND, Nanos};

/// Maximum factor by which a call may take longer.
const SLOWER: Nanos = 2;
/// Resend intervals that a call may take in addition: messages without progress may hold all grants
/// for `resend_usecs`, and are found when they are checked next (GRANT-10).
const GRACE: Nanos = 2;
/// No resend interval is shorter than the time that a link takes for this number of bytes. Source:
/// `docs/networks.md`, time constants on slow links.
const QUEUED_BYTES: u64 = 960_000;
/// Tenths of the goodput that must remain.
const GOODPUT: Nanos = 9;

/// The ends of all calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcomes(Vec<Option<Outcome>>);

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    at: Nanos,
    has_succeeded: bool,
}

impl Outcomes {
    pub(crate) fn new(calls: usize) -> Self {
        Self(vec![None; calls])
    }

    /// Records the end of a call.
    pub(crate) fn observe(&mut self, observation: &Observation<'_>) {
        let (call, has_succeeded) = match observation.event {
            HostEvent::Responded(call, _) => (call, true),
            HostEvent::Failed(call, _) => (call, false),
            _ => return,
        };
        self.0[call as usize] = Some(Outcome { at: observation.at, has_succeeded });
    }

    /// Returns the time when a call succeeded.
    fn success(&self, call: usize) -> Option<Nanos> {
        self.0[call].filter(|outcome| outcome.has_succeeded).map(|outcome| outcome.at)
    }

    /// Returns the end of the last of the planned calls.
    fn last(&self, calls: usize) -> Nanos {
        (0..calls).filter_map(|call| self.success(call)).max().unwrap_or(0)
    }
}

/// Compares a run with an attack to one without.
///
/// # Errors
///
/// The attack has ended or delayed a call, or has taken too much of the goodput.
pub(crate) fn compare(
    scenario: &Scenario,
    alone: &Outcomes,
    attacked: &Outcomes,
) -> Result<(), Violation> {
    let config = &scenario.config;
    let interval = config.resend_interval_usecs().max(config.resend_usecs());
    let queue = scenario.fabric.topology.host_rate.time(QUEUED_BYTES);
    let grace = GRACE * (interval * MICROSECOND).max(queue);
    for (number, planned) in scenario.calls.iter().enumerate() {
        let Some(without) = alone.success(number) else { continue };
        let violation = |observed: String| Violation {
            kind: ViolationKind::Undisturbed,
            calls: vec![number as CallId],
            expected: format!(
                "call {number}, which takes {} ns without the hostile host, succeeds in at most {SLOWER} times that and \
                 {grace} ns",
                without - planned.at
            ),
            observed,
        };
        let Some(with) = attacked.success(number) else {
            return Err(violation("it fails".to_owned()));
        };
        let took = with - planned.at;
        if took > SLOWER * (without - planned.at) + grace {
            return Err(violation(format!("it takes {took} ns")));
        }
    }
    let calls = scenario.calls.len();
    let (without, with) = (alone.last(calls), attacked.last(calls));
    Violation::unless(
        with.saturating_sub(grace) * GOODPUT <= without * 10,
        ViolationKind::Undisturbed,
        None,
        || {
            (
                format!(
                    "at least 0.{GOODPUT} of the goodput: all calls have ended at {without} ns without the hostile host"
                ),
                format!("at {with} ns"),
            )
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::PeerModel;
    use apus_workload::time::MILLISECOND;

    /// Compares two runs of three calls at 0, which take these times, or fail.
    fn compared(alone: [Option<Nanos>; 3], attacked: [Option<Nanos>; 3]) -> Result<(), String> {
        let mut scenario = Scenario::generate_with(1, PeerModel::Hostile);
        let builder = scenario.config.to_builder().resend_interval_usecs(1_000).resend_usecs(1_000);
        scenario.config = builder.build().unwrap();
        scenario.calls.truncate(3);
        scenario.calls.iter_mut().for_each(|call| call.at = 0);
        let outcomes = |ends: [Option<Nanos>; 3]| {
            let end = |end: Option<Nanos>| {
                Some(Outcome { at: end.unwrap_or(0), has_succeeded: end.is_some() })
            };
            Outcomes(ends.map(end).to_vec())
        };
        compare(&scenario, &outcomes(alone), &outcomes(attacked))
            .map_err(|violation| format!("{:?} {}", violation.calls, violation.observed))
    }

    #[test]
    fn calls_may_take_twice_their_time_and_some_resend_intervals() {
        let alone = [Some(10 * MILLISECOND), Some(0), Some(100 * MILLISECOND)];
        assert_eq!(compared(alone, alone), Ok(()));
        let limits = [Some(22 * MILLISECOND), Some(2 * MILLISECOND), Some(100 * MILLISECOND)];
        assert_eq!(compared(alone, limits), Ok(()));
        let slow = [Some(22 * MILLISECOND + 1), limits[1], limits[2]];
        assert_eq!(compared(alone, slow), Err("[0] it takes 22000001 ns".to_owned()));
    }

    #[test]
    fn only_calls_that_fail_without_the_attack_may_fail() {
        let alone = [Some(1), None, Some(1)];
        assert_eq!(compared(alone, alone), Ok(()));
        assert_eq!(compared(alone, [Some(1), None, None]), Err("[2] it fails".to_owned()));
        assert_eq!(compared(alone, [Some(1), Some(MILLISECOND), Some(1)]), Ok(()));
    }

    #[test]
    fn nine_tenths_of_the_goodput_remain() {
        let all = |millis: Nanos| [Some(millis * MILLISECOND); 3];
        assert_eq!(compared(all(90), all(102)), Ok(()));
        assert_eq!(compared(all(90), all(103)), Err("[] at 103000000 ns".to_owned()));
    }
}
