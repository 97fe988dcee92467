//! Is every request executed at most once, does every response belong to its request, does every call end
//! once, and do failed calls tell the truth?
//!
//! Requirements AMO-2, AMO-5, RPC-3, RPC-4.

use apus_proto::Execution;

use super::Checker;
use crate::directory::Directory;
use crate::seen::{CallId, Seen, What};
use crate::violation::{Kind, Violation};

/// What is known about all calls.
#[derive(Debug)]
pub(crate) struct ExecutionChecker {
    calls: Vec<State>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    end: End,
    /// How often the request was executed.
    executed: u32,
    /// In which life of its server it was executed last.
    life: u32,
    replied: bool,
}

/// How a call stands.
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
        seen: &Seen<'_>,
        call: Option<CallId>,
    ) -> Result<(), Violation> {
        let host = seen.host;
        let Some(call) = call else {
            return Err(Violation {
                kind: Kind::Execution,
                calls: Vec::new(),
                expected: "a request that somebody made".to_owned(),
                seen: format!("host {host} executes a request that nobody made"),
            });
        };
        let planned = directory.call(call);
        let state = &mut self.calls[call as usize];
        let life = directory.life(host);
        // An idempotent call goes on when its server has lost the session (AMO-3).
        // The Linux module forgets what it has executed, and executes late duplicates again (row K-5).
        let forgets = directory.runs_module(host);
        let once = state.executed == 0 || planned.idempotent || forgets;
        let expected = || {
            format!("the request of call {call} is executed at most once, at host {}", planned.to)
        };
        Violation::unless(once && planned.to == host, Kind::Execution, call, || {
            let times = state.executed + 1;
            (
                expected(),
                format!(
                    "host {host} executes it for the {times}. time, in its life {life}; before in life {}",
                    state.life
                ),
            )
        })?;
        let denied = state.end == End::Failed(Execution::NotExecuted);
        Violation::unless(!denied, Kind::Execution, call, || {
            (
                format!("call {call}, which failed as not executed, never is (AMO-5)"),
                format!("host {host} executes it later"),
            )
        })?;
        state.executed += 1;
        state.life = life;
        Ok(())
    }

    fn ended(&mut self, call: CallId, end: End) -> Result<(), Violation> {
        let state = &mut self.calls[call as usize];
        Violation::unless(state.end == End::Running, Kind::Execution, call, || {
            (format!("call {call} ends once"), format!("{:?} after {:?}", end, state.end))
        })?;
        state.end = end;
        Ok(())
    }
}

impl Checker for ExecutionChecker {
    fn see(&mut self, directory: &Directory, seen: &Seen<'_>) -> Result<(), Violation> {
        match seen.what {
            What::Called(call) => self.calls[call as usize].end = End::Running,
            What::Cancelled(call) => self.ended(call, End::Cancelled)?,
            What::Requested(call, _) => self.requested(directory, seen, call)?,
            What::Replied(call) => self.calls[call as usize].replied = true,
            What::Responded(call, _) => {
                self.ended(call, End::Responded)?;
                let state = self.calls[call as usize];
                Violation::unless(state.replied, Kind::Execution, call, || {
                    (
                        "a response that a server gave".to_owned(),
                        format!("nobody has answered call {call}: {state:?}"),
                    )
                })?;
            }
            What::Failed(call, error) => {
                self.ended(call, End::Failed(error.execution))?;
                let executed = self.calls[call as usize].executed;
                let true_word = match error.execution {
                    Execution::Executed => executed > 0,
                    Execution::NotExecuted => executed == 0,
                    Execution::Unknown => true,
                };
                Violation::unless(true_word, Kind::Execution, call, || {
                    (
                        format!(
                            "call {call}, executed {executed} times, says so when it fails (AMO-5)"
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
