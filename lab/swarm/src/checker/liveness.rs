//! Liveness checker: every call ends, and the last calls of each host succeed.
//!
//! Requirements TIME-3, TIME-4, RPC-3, RPC-8, CAP-1. Calls of a crashed host do not count. *Probes*
//! are calls made after all faults and all other calls have ended; they must neither be late nor
//! fail.

use super::contract::Checker;
use crate::directory::Directory;
use crate::observation::{CallId, HostEvent, Observation};
use crate::violation::{Violation, ViolationKind};
use apus_workload::time::Nanos;

/// State of all calls.
#[derive(Debug)]
pub(crate) struct Liveness {
    calls: Vec<State>,
    /// Number of calls that have started, or wait for room, and have not ended.
    open: u32,
    /// First call that is a probe.
    probes: CallId,
    /// Time of each call.
    made: Vec<Nanos>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Planned,
    Waiting,
    Running,
    Ended,
}

impl Liveness {
    pub(crate) fn new(directory: &Directory, probes: CallId) -> Self {
        let calls = directory.scenario.calls.len();
        Self { calls: vec![State::Planned; calls], open: 0, probes, made: vec![0; calls] }
    }

    /// Returns the number of calls that have not ended.
    pub(crate) const fn open(&self) -> u32 {
        self.open
    }

    /// Checks that every call has ended by `now`.
    pub(crate) fn check_ends(&self, directory: &Directory, now: Nanos) -> Result<(), Violation> {
        let open = |state: &State| matches!(state, State::Waiting | State::Running);
        let Some(call) = self.calls.iter().position(open) else { return Ok(()) };
        Err(Violation {
            kind: ViolationKind::Liveness,
            calls: vec![call as CallId],
            expected: format!("every call has ended at {now} ns"),
            observed: format!(
                "{} calls have not; call {call} is {:?}: {:?}",
                self.open,
                self.calls[call],
                directory.call(call as CallId)
            ),
        })
    }

    fn change(&mut self, call: CallId, state: State) {
        let open = |state| matches!(state, State::Waiting | State::Running);
        let old = std::mem::replace(&mut self.calls[call as usize], state);
        self.open = self.open + u32::from(open(state)) - u32::from(open(old));
    }
}

impl Liveness {
    /// RPC-8: a call has ended by its deadline, unless its host was paused or its processor busy.
    fn check_deadline(
        &self,
        directory: &Directory,
        now: Nanos,
        call: CallId,
    ) -> Result<(), Violation> {
        let planned = directory.call(call);
        let Some(after) = planned.deadline else { return Ok(()) };
        let deadline = self.made[call as usize] + after;
        let host = directory.ends.host_of(planned.from);
        // Timers wait for a processor that is busy.
        let sleeps = directory.scenario.processors.is_some()
            || directory.scenario.outages.pauses.iter().any(|pause| pause.host == host);
        Violation::unless(now <= deadline || sleeps, ViolationKind::Liveness, call, || {
            (
                format!("call {call} ends at its deadline, {deadline} ns"),
                format!("it ends at {now} ns"),
            )
        })
    }
}

impl Checker for Liveness {
    fn observe(
        &mut self,
        directory: &Directory,
        observation: &Observation<'_>,
    ) -> Result<(), Violation> {
        match observation.event {
            HostEvent::Waiting(call) => self.change(call, State::Waiting),
            HostEvent::Called(call) => {
                self.made[call as usize] = observation.at;
                self.change(call, State::Running);
            }
            HostEvent::Cancelled(call) => self.change(call, State::Ended),
            HostEvent::Responded(call, _) => {
                self.change(call, State::Ended);
                self.check_deadline(directory, observation.at, call)?;
            }
            HostEvent::Failed(call, error) => {
                self.change(call, State::Ended);
                self.check_deadline(directory, observation.at, call)?;
                // After unnoticed corruption success is not promised.
                let promised =
                    call >= self.probes && !directory.scenario.has_unnoticed_corruption();
                Violation::unless(!promised, ViolationKind::Liveness, call, || {
                    (
                        format!(
                            "call {call}, made after all faults and calls have ended, succeeds"
                        ),
                        error.to_string(),
                    )
                })?;
            }
            HostEvent::Crashed => {
                for call in 0..self.calls.len() as CallId {
                    let made = self.calls[call as usize] != State::Planned;
                    if made && directory.call(call).from == observation.host {
                        self.change(call, State::Ended);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}
