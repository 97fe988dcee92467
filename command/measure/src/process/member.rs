//! Parent's state of one agent of a crew.

use std::io::{self, BufReader, Write};
use std::mem;
use std::net::SocketAddr;
use std::sync::mpsc::Sender;
use std::thread;

use rustix::process::Signal;
use serde_json::Value;

use super::clock_offset::Exchange;
use super::handle::{AgentHandle, RunningAgent};
use super::protocol::{AgentMessage, MAX_LINE, ParentMessage, Task, read_line, write_line};
use crate::clock;
use crate::error::{Doing, Error};

/// An event sent by an agent.
pub(super) struct MemberEvent {
    /// Index of the agent in its crew.
    pub(super) index: usize,
    /// This host's clock when the line arrived.
    at: u64,
    /// `None` if the agent closed its output.
    what: io::Result<Option<AgentMessage>>,
}

impl MemberEvent {
    /// Returns whether the agent itself reports a failure.
    pub(super) const fn reports_failure(&self) -> bool {
        matches!(self.what, Ok(Some(AgentMessage::Failed(_))))
    }
}

/// One agent of a crew. Dropping it ends the agent.
pub(super) struct Member {
    name: String,
    /// Standard input of the agent; `None` once the agent is to end.
    to_agent: Option<Box<dyn Write + Send>>,
    body: AgentHandle,
    /// Listening address of the agent, once it is ready.
    pub(super) address: Option<SocketAddr>,
    /// Whether the agent has finished preparing.
    pub(super) is_prepared: bool,
    /// Result of its task.
    pub(super) result: Option<Value>,
    /// Readings of its clock.
    pub(super) exchanges: Vec<Exchange>,
    /// The agent closed its output: no event follows.
    pub(super) ended: bool,
    /// The agent was killed, so that its end is no failure.
    killed: bool,
}

impl Member {
    /// Sends the task. The agent's messages go to `events`, with the number `index`.
    pub(super) fn begin(
        agent: RunningAgent,
        task: Task,
        index: usize,
        events: Sender<MemberEvent>,
    ) -> Result<Self, Error> {
        let RunningAgent { body, to_agent, from_agent } = agent;
        thread::spawn(move || {
            let mut lines = BufReader::new(from_agent);
            loop {
                let what = read_line(&mut lines, MAX_LINE);
                let last = !matches!(what, Ok(Some(_)));
                if events.send(MemberEvent { index, at: clock::now(), what }).is_err() || last {
                    return;
                }
            }
        });
        let mut member = Self {
            name: task.name.clone(),
            to_agent: Some(to_agent),
            body,
            address: None,
            is_prepared: false,
            result: None,
            exchanges: Vec::new(),
            ended: false,
            killed: false,
        };
        member.order(&ParentMessage::Task(task))?;
        Ok(member)
    }

    pub(super) fn order(&mut self, order: &ParentMessage) -> Result<(), Error> {
        let Some(to_agent) = self.to_agent.as_mut() else { return Ok(()) };
        match write_line(&mut **to_agent, order) {
            Ok(()) => Ok(()),
            // The agent ended; its earlier messages explain more than a broken pipe.
            Err(error) if gone(&error) => Ok(()),
            Err(error) => Err(error).doing(|| format!("talk to {}", self.name)),
        }
    }

    /// Returns the agent's process id, if it is a process of this host.
    pub(super) fn pid(&self) -> Option<u32> {
        self.body.pid()
    }

    /// Sends a signal to the agent's process.
    pub(super) fn signal(&mut self, signal: Signal) -> Result<(), Error> {
        self.body.signal(signal).doing(|| format!("send {signal:?} to {}", self.name))
    }

    /// Kills the agent's process. Its end then does not count as a failure.
    pub(super) fn kill(&mut self) -> Result<(), Error> {
        self.signal(Signal::KILL)?;
        self.killed = true;
        Ok(())
    }

    /// Returns whether no further event is expected from the agent: it has a result, or was
    /// killed.
    pub(super) const fn is_done(&self) -> bool {
        self.result.is_some() || self.killed
    }

    /// Handles an event.
    ///
    /// # Errors
    ///
    /// The agent failed.
    pub(super) fn handle(&mut self, event: MemberEvent) -> Result<(), Error> {
        match event.what {
            Ok(Some(AgentMessage::Ready { .. })) if self.address.is_some() => {
                Err(self.failed("ready a second time".to_owned()))
            }
            Ok(Some(AgentMessage::Ready { address })) => {
                self.address = Some(address);
                Ok(())
            }
            Ok(Some(AgentMessage::Prepared)) => {
                self.is_prepared = true;
                Ok(())
            }
            Ok(Some(AgentMessage::Clock { asked, now })) => {
                self.exchanges.push(Exchange { asked, theirs: now, answered: event.at });
                Ok(())
            }
            Ok(Some(AgentMessage::Done(result))) => {
                self.result = Some(result);
                Ok(())
            }
            Ok(Some(AgentMessage::Failed(why))) => {
                self.ended = true;
                Err(self.failed(why))
            }
            Ok(Some(AgentMessage::Ended { how })) => self.end(|_| how),
            Ok(None) => self.end(AgentHandle::how_it_ended),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.end(|_| format!("sent an unexpected line: {error}"))
            }
            Err(error) => self.end(|_| format!("was lost: {error}")),
        }
    }

    /// Records that no event follows, which is a failure if the task has no result.
    fn end(&mut self, how: impl FnOnce(&mut AgentHandle) -> String) -> Result<(), Error> {
        if mem::replace(&mut self.ended, true) || self.is_done() {
            return Ok(());
        }
        let how = how(&mut self.body);
        Err(self.failed(how))
    }

    pub(super) fn failed(&self, said: String) -> Error {
        Error::Agent { agent: self.name.clone(), said }
    }

    /// Closes the agent's input, which ends the agent.
    pub(super) fn hang_up(&mut self) {
        drop(self.to_agent.take());
    }
}

/// Returns whether the error means that the other side ended.
fn gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

impl Drop for Member {
    fn drop(&mut self) {
        self.hang_up();
        self.body.end_now();
    }
}
