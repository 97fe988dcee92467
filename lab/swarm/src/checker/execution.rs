//! Execution checker: requests are executed at most once, responses belong to their requests, calls
//! end once, and failed calls report correctly whether they were executed.
//!
//! Requirements AMO-2, AMO-5, RPC-3, RPC-4.

use apus_proto::Execution;

use super::contract::Checker;
use crate::directory::Directory;
use crate::observation::{CallId, HostEvent, Observation};
use crate::violation::{Violation, ViolationKind};

/// State of all calls.
#[derive(Debug)]
pub(crate) struct ExecutionChecker {
    calls: Vec<State>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    end: End,
    /// Number of executions.
    executed: u32,
    /// Incarnation of the server at the last execution.
    incarnation: u32,
    replied: bool,
}

/// State of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    NotMade,
    Running,
    Responded,
    Failed(Execution),
    Cancelled,
}

impl ExecutionChecker {
    pub(crate) fn new(calls: usize) -> Self {
        Self { calls: vec![State::default(); calls] }
    }

    fn requested(
        &mut self,
        directory: &Directory,
        observation: &Observation<'_>,
        call: Option<CallId>,
    ) -> Result<(), Violation> {
        let host = observation.host;
        let Some(call) = call else {
            return Err(Violation {
                kind: ViolationKind::Execution,
                calls: Vec::new(),
                expected: "a request of a call that was made".to_owned(),
                observed: format!("host {host} executes a request of no call"),
            });
        };
        let planned = directory.call(call);
        let state = &mut self.calls[call as usize];
        let incarnation = directory.incarnation(host);
        // An idempotent call is repeated when its server has lost the session (AMO-3). The Linux
        // module forgets executed requests, and executes late duplicates again
        // (docs/reference/homa-module.md, *At most once*).
        let forgets = directory.runs_module(host);
        let once = state.executed == 0 || planned.idempotent || forgets;
        let expected = || {
            format!("the request of call {call} is executed at most once, at host {}", planned.to)
        };
        Violation::unless(once && planned.to == host, ViolationKind::Execution, call, || {
            let times = state.executed + 1;
            (
                expected(),
                format!(
                    "host {host} executes it for the {times}. time, in incarnation {incarnation}; previously in incarnation {}",
                    state.incarnation
                ),
            )
        })?;
        let denied = state.end == End::Failed(Execution::NotExecuted);
        Violation::unless(!denied, ViolationKind::Execution, call, || {
            (
                format!("call {call}, which failed as not executed, is never executed (AMO-5)"),
                format!("host {host} executes it later"),
            )
        })?;
        state.executed += 1;
        state.incarnation = incarnation;
        Ok(())
    }

    fn end(&mut self, call: CallId, end: End) -> Result<(), Violation> {
        let state = &mut self.calls[call as usize];
        Violation::unless(state.end == End::Running, ViolationKind::Execution, call, || {
            (format!("call {call} ends once"), format!("{:?} after {:?}", end, state.end))
        })?;
        state.end = end;
        Ok(())
    }
}

impl Checker for ExecutionChecker {
    fn observe(
        &mut self,
        directory: &Directory,
        observation: &Observation<'_>,
    ) -> Result<(), Violation> {
        match observation.event {
            HostEvent::Called(call) => self.calls[call as usize].end = End::Running,
            HostEvent::Cancelled(call) => self.end(call, End::Cancelled)?,
            HostEvent::Requested(call, _) => self.requested(directory, observation, call)?,
            // An honest host never sends FREEZE, which only an application can request.
            HostEvent::Frozen(peer) => Violation::unless(
                !directory.scenario.is_honest(peer),
                ViolationKind::Execution,
                None,
                || {
                    (
                        "a FREEZE of an honest host shows its session (WIRE-16)".to_owned(),
                        format!("host {} heeds a forged one of host {peer}", observation.host),
                    )
                },
            )?,
            HostEvent::Replied(call) => self.calls[call as usize].replied = true,
            HostEvent::Responded(call, _) => {
                self.end(call, End::Responded)?;
                let state = self.calls[call as usize];
                Violation::unless(state.replied, ViolationKind::Execution, call, || {
                    (
                        "a response that a server sent".to_owned(),
                        format!("no server has replied to call {call}: {state:?}"),
                    )
                })?;
            }
            HostEvent::Failed(call, error) => {
                self.end(call, End::Failed(error.execution))?;
                let executed = self.calls[call as usize].executed;
                let correct = match error.execution {
                    Execution::Executed => executed > 0,
                    Execution::NotExecuted => executed == 0,
                    Execution::Unknown => true,
                };
                Violation::unless(correct, ViolationKind::Execution, call, || {
                    (
                        format!(
                            "the failure of call {call}, executed {executed} times, reports that (AMO-5)"
                        ),
                        error.to_string(),
                    )
                })?;
            }
            _ => {}
        }
        Ok(())
    }
}
