//! A crew: agents that start and report together.
//!
//! ```text
//!   start ──▶ addresses ──▶ prepare ──▶ begin ──▶ results
//!     │          │             │           │         └─ all, or some and the first failure
//!     │          │             │           └─ clocks compared, details sent, one start instant
//!     │          │             └─ on request: work of unknown duration, such as connecting
//!     │          └─ listening address of each
//!     └─ each on its host
//! ```
//!
//! The first failure is the error of the crew; the other agents end when the crew is dropped.

use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::clock_offset::ClockOffset;
use super::handle::RunningAgent;
use super::member::{Member, MemberEvent};
use super::protocol::{ParentMessage, Task};
use crate::clock;
use crate::error::Error;

/// Time within which an agent must be ready, read its clock, or report after a stop. Chosen by us:
/// a hundred times the need of a busy machine; it only ends a wait that would last forever.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);

/// Time within which the other agents must report their results once one has failed.
const GRACE: Duration = Duration::from_secs(5);

/// Delay of an agent's end-of-process event after the failures that it causes in others.
const DEATH_DELAY: Duration = Duration::from_millis(200);

/// Clock readings per agent. Chosen by us: the fastest of this number of round trips is rarely
/// delayed.
const EXCHANGES: usize = 16;

/// Agents that work together. Dropping it ends all of them.
pub struct Crew {
    members: Vec<Member>,
    /// Events of all members, in order of arrival.
    events: Receiver<MemberEvent>,
    clocks: Vec<ClockOffset>,
}

/// Results of a crew.
#[derive(Debug)]
pub struct Results<T> {
    /// Result of each agent, in the order of the tasks; `None` if the agent has no result, for
    /// example because it was killed ([`Crew::kill`]).
    pub each: Vec<Option<T>>,
    /// The first failure, if results are missing.
    pub failure: Option<Error>,
}

impl<T> Results<T> {
    /// Returns the results of all agents except killed agents.
    ///
    /// # Errors
    ///
    /// The first failure.
    pub fn all(self) -> Result<Vec<T>, Error> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(self.each.into_iter().flatten().collect()),
        }
    }
}

impl Crew {
    /// Gives each agent its task.
    pub fn begin_all(
        bodies: impl IntoIterator<Item = (Result<RunningAgent, Error>, Task)>,
    ) -> Result<Self, Error> {
        let (sender, events) = mpsc::channel();
        let mut crew = Self { members: Vec::new(), events, clocks: Vec::new() };
        for (index, (agent, task)) in bodies.into_iter().enumerate() {
            crew.members.push(Member::begin(agent?, task, index, sender.clone())?);
        }
        Ok(crew)
    }

    /// Returns the number of agents.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns whether the crew is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Waits until all agents are ready, and returns their listening addresses, in the order of the
    /// tasks.
    ///
    /// # Errors
    ///
    /// The first agent that failed instead.
    pub fn addresses(&mut self) -> Result<Vec<SocketAddr>, Error> {
        self.listen(TIMEOUT, |member| member.address.is_some() || member.result.is_some())?;
        let address = |member: &Member| {
            member.address.ok_or_else(|| member.failed("done before it was ready".to_owned()))
        };
        self.members.iter().map(address).collect()
    }

    /// Compares the clocks of all agents with this host's. To be called while the agents are idle.
    ///
    /// # Errors
    ///
    /// The first agent that failed instead.
    pub fn compare_clocks(&mut self) -> Result<&[ClockOffset], Error> {
        self.clocks.clear();
        for index in 0..self.members.len() {
            self.members[index].exchanges.clear();
            // One agent after another: simultaneous answers would delay each other.
            for number in 1..=EXCHANGES {
                self.members[index].order(&ParentMessage::Clock { asked: clock::now() })?;
                let answered = |member: &Member| member.exchanges.len() >= number;
                self.wait_for(index, TIMEOUT, answered)?;
            }
            let offset = ClockOffset::estimate(&self.members[index].exchanges);
            self.clocks.push(offset.expect("there were exchanges"));
        }
        Ok(&self.clocks)
    }

    /// Returns the clock offsets of the agents, in the order of the tasks, for the translation of
    /// instants in results. Empty before the first comparison, which [`Crew::begin`] makes.
    #[must_use]
    pub fn clocks(&self) -> &[ClockOffset] {
        &self.clocks
    }

    /// Orders all agents to prepare for the start, and waits until all are prepared. Each agent
    /// receives its own details from [`super::Control::prepare`]. `duration` is the approximate
    /// preparation time on an idle machine.
    ///
    /// # Errors
    ///
    /// The first agent that failed instead, or takes far longer than `duration`.
    ///
    /// # Panics
    ///
    /// The number of details differs from the number of agents, or they cannot be written as JSON.
    pub fn prepare<T: Serialize>(
        &mut self,
        details: &[T],
        duration: Duration,
    ) -> Result<(), Error> {
        assert_eq!(details.len(), self.members.len(), "details for each agent");
        for (member, details) in self.members.iter_mut().zip(details) {
            let details = serde_json::to_value(details).expect("details that JSON can hold");
            member.order(&ParentMessage::Prepare(details))?;
        }
        let timeout = duration.saturating_add(TIMEOUT);
        self.listen(timeout, |member| member.is_prepared || member.result.is_some())?;
        match self.members.iter().find(|member| !member.is_prepared) {
            Some(member) => Err(member.failed("done before it was prepared".to_owned())),
            None => Ok(()),
        }
    }

    /// Starts all agents `lead` from now, and returns that instant on this host's clock. Each agent
    /// receives its own details. The lead must cover their transmission: 200 ms is ample within
    /// one building.
    ///
    /// Agents receive the order from [`super::Control::begin`].
    ///
    /// # Errors
    ///
    /// The first agent that failed instead.
    ///
    /// # Panics
    ///
    /// The number of details differs from the number of agents, or they cannot be written as JSON.
    pub fn begin<T: Serialize>(&mut self, details: &[T], lead: Duration) -> Result<u64, Error> {
        assert_eq!(details.len(), self.members.len(), "details for each agent");
        if self.clocks.len() < self.members.len() {
            self.compare_clocks()?;
        }
        let at = clock::now() + clock::as_nanoseconds(lead);
        self.begin_at(details, at)?;
        Ok(at)
    }

    pub(super) fn begin_at<T: Serialize>(&mut self, details: &[T], at: u64) -> Result<(), Error> {
        for ((member, offset), details) in self.members.iter_mut().zip(&self.clocks).zip(details) {
            let details = serde_json::to_value(details).expect("details that JSON can hold");
            member.order(&ParentMessage::Begin { details, at: offset.to_agent(at) })?;
        }
        Ok(())
    }

    /// Sleeps for `duration` while all agents run.
    ///
    /// # Errors
    ///
    /// An agent failed; the call returns at once.
    pub fn sleep(&mut self, duration: Duration) -> Result<(), Error> {
        let began = Instant::now();
        loop {
            let left = duration.saturating_sub(began.elapsed());
            match self.events.recv_timeout(left) {
                Ok(event) => self.handle(event)?,
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                // All agents have ended, successfully.
                Err(RecvTimeoutError::Disconnected) => {
                    thread::sleep(left);
                    return Ok(());
                }
            }
        }
    }

    /// Kills an agent's process (SIGKILL), without a chance for an orderly shutdown. Its end does
    /// not count as a failure of the crew, and it has no result.
    ///
    /// # Errors
    ///
    /// The agent is not a process of this host, or has ended.
    ///
    /// # Panics
    ///
    /// The index is out of range.
    pub fn kill(&mut self, index: usize) -> Result<(), Error> {
        self.members[index].kill()
    }

    /// Returns an agent's process id, if it is a process of this host.
    pub(super) fn pid(&self, index: usize) -> Option<u32> {
        self.members[index].pid()
    }

    /// Sends a signal to the processes of all agents.
    pub(super) fn signal(&mut self, signal: Signal) -> Result<(), Error> {
        self.members.iter_mut().try_for_each(|member| member.signal(signal))
    }

    /// Sends all agents a stop request.
    ///
    /// # Errors
    ///
    /// A request cannot be written.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.members.iter_mut().try_for_each(|member| member.order(&ParentMessage::Stop))
    }

    /// Waits for the results of agents that end on their own after about `duration`, or after a
    /// stop request.
    ///
    /// When one agent fails, or takes far longer, the others receive a stop request. Their later
    /// reports still count.
    pub fn results<T: DeserializeOwned>(mut self, duration: Duration) -> Results<T> {
        let timeout = duration.saturating_add(TIMEOUT);
        let mut failure = self.listen(timeout, Member::is_done).err();
        if failure.is_some() {
            self.collect_remaining();
        }
        let mut each = Vec::new();
        for member in &mut self.members {
            let value = member.result.take();
            let result = value.map(serde_json::from_value).transpose().unwrap_or_else(|error| {
                let said = format!("an unexpected result: {error}");
                failure.get_or_insert(member.failed(said));
                None
            });
            each.push(result);
        }
        Results { each, failure }
    }

    /// Collects the results of the agents that have not failed.
    fn collect_remaining(&mut self) {
        // Only the first failure is recorded.
        let _ = self.stop();
        let until = Instant::now() + GRACE;
        let over = |member: &Member| member.is_done() || member.ended;
        while !self.members.iter().all(over) {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(event) = self.events.recv_timeout(left) else { return };
            let _ = self.members[event.index].handle(event);
        }
    }

    /// Handles an event of a member.
    ///
    /// # Errors
    ///
    /// The agent failed. If the agent itself reports a failure, the cause may be the death of
    /// another agent: the error is then that agent's end.
    fn handle(&mut self, event: MemberEvent) -> Result<(), Error> {
        let reported = event.reports_failure();
        let Err(failure) = self.members[event.index].handle(event) else { return Ok(()) };
        Err(if reported { self.death().unwrap_or(failure) } else { failure })
    }

    /// Returns the end of an agent that died without a report, if detected soon.
    fn death(&mut self) -> Option<Error> {
        let until = Instant::now() + DEATH_DELAY;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let event = self.events.recv_timeout(left).ok()?;
            let reported = event.reports_failure();
            let failure = self.members[event.index].handle(event).err();
            if failure.is_some() && !reported {
                return failure;
            }
        }
    }

    /// Handles events until `until` holds for all agents.
    fn listen(&mut self, timeout: Duration, until: impl Fn(&Member) -> bool) -> Result<(), Error> {
        let deadline = Instant::now().checked_add(timeout);
        (0..self.members.len())
            .try_for_each(|index| self.wait_until(index, timeout, deadline, &until))
    }

    /// Handles events until `until` holds for one agent.
    fn wait_for(
        &mut self,
        index: usize,
        timeout: Duration,
        until: impl Fn(&Member) -> bool,
    ) -> Result<(), Error> {
        self.wait_until(index, timeout, Instant::now().checked_add(timeout), &until)
    }

    fn wait_until(
        &mut self,
        index: usize,
        timeout: Duration,
        deadline: Option<Instant>,
        until: &impl Fn(&Member) -> bool,
    ) -> Result<(), Error> {
        while !until(&self.members[index]) {
            let event = match deadline {
                Some(deadline) => {
                    self.events.recv_timeout(deadline.saturating_duration_since(Instant::now()))
                }
                None => self.events.recv().map_err(RecvTimeoutError::from),
            };
            let problem = match event {
                Ok(event) => {
                    self.handle(event)?;
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {
                    format!("no answer for {} s", timeout.as_secs())
                }
                // All agents have ended, and their events have been handled.
                Err(RecvTimeoutError::Disconnected) => "has ended".to_owned(),
            };
            return Err(self.members[index].failed(problem));
        }
        Ok(())
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        // Closes all inputs at once, so that the members end in parallel.
        self.members.iter_mut().for_each(Member::hang_up);
    }
}
