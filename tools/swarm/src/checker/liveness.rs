//! Does every call end, and does the last one of each host succeed?
//!
//! Requirements TIME-3, TIME-4, RPC-3, RPC-8, CAP-1. Calls of a host that has died do not count. *Probes* are calls
//! that are made after everything has healed and ended: they may be neither late nor fail.

use super::Checker;
use crate::directory::Directory;
use crate::seen::{CallId, Seen, What};
use crate::violation::{Kind, Violation};
use apus_workload::time::Nanos;

/// How all calls stand.
#[derive(Debug)]
pub(crate) struct Liveness {
    calls: Vec<State>,
    /// Calls that have begun, or wait for room, and have not ended.
    open: u32,
    /// Calls from this one on are probes.
    probes: CallId,
    /// When each call was made.
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

    /// Calls that have not ended.
    pub(crate) const fn open(&self) -> u32 {
        self.open
    }

    /// Every call should have ended by `now`.
    pub(crate) fn check_ends(&self, directory: &Directory, now: Nanos) -> Result<(), Violation> {
        let open = |state: &State| matches!(state, State::Waiting | State::Running);
        let Some(call) = self.calls.iter().position(open) else { return Ok(()) };
        Err(Violation {
            kind: Kind::Liveness,
            calls: vec![call as CallId],
            expected: format!("everything has ended at {now} ns"),
            seen: format!(
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
    /// RPC-8: a call with a deadline has ended when that passes, unless its host slept through it.
    fn check_deadline(
        &self,
        directory: &Directory,
        now: Nanos,
        call: CallId,
    ) -> Result<(), Violation> {
        let planned = directory.call(call);
        let Some(after) = planned.deadline else { return Ok(()) };
        let deadline = self.made[call as usize] + after;
        let sleeps =
            directory.scenario.outages.pauses.iter().any(|pause| pause.host == planned.from);
        Violation::unless(now <= deadline || sleeps, Kind::Liveness, call, || {
            (
                format!("call {call} ends at its deadline, {deadline} ns"),
                format!("it ends at {now} ns"),
            )
        })
    }
}

impl Checker for Liveness {
    fn see(&mut self, directory: &Directory, seen: &Seen<'_>) -> Result<(), Violation> {
        match seen.what {
            What::Waiting(call) => self.change(call, State::Waiting),
            What::Called(call) => {
                self.made[call as usize] = seen.at;
                self.change(call, State::Running);
            }
            What::Cancelled(call) => self.change(call, State::Ended),
            What::Responded(call, _) => {
                self.change(call, State::Ended);
                self.check_deadline(directory, seen.at, call)?;
            }
            What::Failed(call, error) => {
                self.change(call, State::Ended);
                self.check_deadline(directory, seen.at, call)?;
                // After packets with other contents than their senders gave nothing is promised.
                let promised = call >= self.probes && !directory.scenario.lets_corruption_through();
                Violation::unless(!promised, Kind::Liveness, call, || {
                    (
                        format!(
                            "call {call}, made after everything has healed and ended, is answered"
                        ),
                        error.to_string(),
                    )
                })?;
            }
            What::Crashed => {
                for call in 0..self.calls.len() as CallId {
                    let made = self.calls[call as usize] != State::Planned;
                    if made && directory.call(call).from == seen.host {
                        self.change(call, State::Ended);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}
