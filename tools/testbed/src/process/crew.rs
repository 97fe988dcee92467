//! How do several agents begin together, and what becomes of them if one fails?
//!
//! ```text
//!   start ──▶ addresses ──▶ begin ──▶ results
//!     │          │            │          └─ of all; or of those that came so far, and the first failure
//!     │          │            └─ clocks compared, details handed out, one start instant for all
//!     │          └─ where each of them listens
//!     └─ each on its host
//! ```
//!
//! Whatever fails first is the error; the other agents end when the crew is dropped.

use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::body::Embodied;
use super::lines::{Order, Task};
use super::member::{Heard, Member};
use super::offset::ClockOffset;
use crate::clock;
use crate::error::Error;

/// How long an agent may take to be ready, to tell the time, or to report after it was stopped. Ours: a
/// hundred times what it takes on a busy machine; this only ends what would hang for ever.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// How long the others may take to report what they have, once one failed.
const GRACE: Duration = Duration::from_secs(5);

/// How long an agent's death may be heard later than what others say about it.
const MOMENT: Duration = Duration::from_millis(200);

/// Questions for the time per agent. Ours: the least of so many round trips is hardly ever delayed.
const EXCHANGES: usize = 16;

/// Agents that work together. Dropping it ends them all.
pub struct Crew {
    members: Vec<Member>,
    /// What they say, in the order in which it comes.
    heard: Receiver<Heard>,
    clocks: Vec<ClockOffset>,
}

/// What came of a crew's work.
#[derive(Debug)]
pub struct Results<T> {
    /// The result of each agent, in the order of the tasks; `None` if it has none.
    pub each: Vec<Option<T>>,
    /// Why some are missing: what went wrong first.
    pub failure: Option<Error>,
}

impl<T> Results<T> {
    /// The results of all.
    ///
    /// # Errors
    ///
    /// What went wrong first, if anything did.
    pub fn all(self) -> Result<Vec<T>, Error> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(self.each.into_iter().flatten().collect()),
        }
    }
}

impl Crew {
    /// Hands each body its task.
    pub(crate) fn begin_all(
        bodies: impl IntoIterator<Item = (Result<Embodied, Error>, Task)>,
    ) -> Result<Self, Error> {
        let (sender, heard) = mpsc::channel();
        let mut crew = Self { members: Vec::new(), heard, clocks: Vec::new() };
        for (who, (embodied, task)) in bodies.into_iter().enumerate() {
            crew.members.push(Member::begin(embodied?, task, who, sender.clone())?);
        }
        Ok(crew)
    }

    /// Number of agents.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are no agents.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Waits until all agents are ready and tells where they listen, in the order of the tasks.
    ///
    /// # Errors
    ///
    /// The first agent that failed instead.
    pub fn addresses(&mut self) -> Result<Vec<SocketAddr>, Error> {
        self.listen(PATIENCE, |member| member.address.is_some() || member.result.is_some())?;
        let address = |member: &Member| {
            member.address.ok_or_else(|| member.failed("done before it was ready".to_owned()))
        };
        self.members.iter().map(address).collect()
    }

    /// Compares the clocks of all agents with this host's. To be called while they do nothing else.
    ///
    /// # Errors
    ///
    /// The first agent that failed instead.
    pub fn compare_clocks(&mut self) -> Result<&[ClockOffset], Error> {
        self.clocks.clear();
        for who in 0..self.members.len() {
            self.members[who].exchanges.clear();
            // One after the other: answers that come together would delay each other.
            for number in 1..=EXCHANGES {
                self.members[who].order(&Order::Clock { asked: clock::now() })?;
                let told = |member: &Member| member.exchanges.len() >= number;
                self.listen_to(who, PATIENCE, told)?;
            }
            let offset = ClockOffset::estimate(&self.members[who].exchanges);
            self.clocks.push(offset.expect("there were exchanges"));
        }
        Ok(&self.clocks)
    }

    /// The clocks of the agents, in the order of the tasks: results that hold instants can be translated.
    /// Empty before they were compared; [`Crew::begin`] does that.
    #[must_use]
    pub fn clocks(&self) -> &[ClockOffset] {
        &self.clocks
    }

    /// Lets all agents begin `lead` from now, and gives that instant by this host's clock. Each gets its
    /// own details, which take some time on their way: a lead of 200 ms is ample in one building.
    ///
    /// Agents take it with [`super::Control::begin`].
    ///
    /// # Errors
    ///
    /// The first agent that failed instead.
    ///
    /// # Panics
    ///
    /// There are not as many details as agents, or they cannot be written as JSON.
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
            member.order(&Order::Begin { details, at: offset.to_agent(at) })?;
        }
        Ok(())
    }

    /// Sleeps for as long as all agents are well.
    ///
    /// # Errors
    ///
    /// An agent failed meanwhile; that is told at once.
    pub fn sleep(&mut self, duration: Duration) -> Result<(), Error> {
        let began = Instant::now();
        loop {
            let left = duration.saturating_sub(began.elapsed());
            match self.heard.recv_timeout(left) {
                Ok(heard) => self.hear(heard)?,
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                // All have ended well before.
                Err(RecvTimeoutError::Disconnected) => {
                    thread::sleep(left);
                    return Ok(());
                }
            }
        }
    }

    /// Asks all agents to come to an end.
    ///
    /// # Errors
    ///
    /// The system does not let them be asked.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.members.iter_mut().try_for_each(|member| member.order(&Order::Stop))
    }

    /// Waits for the results of agents that come to an end by themselves after about `duration`, or that
    /// were asked to.
    ///
    /// Once one fails, or takes far longer than that, the others are asked to stop; what they still report
    /// is kept.
    pub fn results<T: DeserializeOwned>(mut self, duration: Duration) -> Results<T> {
        let patience = duration.saturating_add(PATIENCE);
        let mut failure = self.listen(patience, |member| member.result.is_some()).err();
        if failure.is_some() {
            self.hear_the_rest();
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

    /// Lets those that did not fail report what they have.
    fn hear_the_rest(&mut self) {
        // What fails from here on is not what failed first.
        let _ = self.stop();
        let until = Instant::now() + GRACE;
        let over = |member: &Member| member.result.is_some() || member.ended;
        while !self.members.iter().all(over) {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(heard) = self.heard.recv_timeout(left) else { return };
            let _ = self.members[heard.who].hear(heard);
        }
    }

    /// Takes note of something that an agent said.
    ///
    /// # Errors
    ///
    /// It failed. If it says so itself, another one may have died and be the reason for it: that one's end is
    /// the error then.
    fn hear(&mut self, heard: Heard) -> Result<(), Error> {
        let in_words = heard.is_failure_in_words();
        let Err(failure) = self.members[heard.who].hear(heard) else { return Ok(()) };
        Err(if in_words { self.death().unwrap_or(failure) } else { failure })
    }

    /// An agent that ended without a word, if one is noticed soon.
    fn death(&mut self) -> Option<Error> {
        let until = Instant::now() + MOMENT;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let heard = self.heard.recv_timeout(left).ok()?;
            let in_words = heard.is_failure_in_words();
            let failure = self.members[heard.who].hear(heard).err();
            if failure.is_some() && !in_words {
                return failure;
            }
        }
    }

    /// Hears until something holds for all agents.
    fn listen(&mut self, patience: Duration, until: impl Fn(&Member) -> bool) -> Result<(), Error> {
        let deadline = Instant::now().checked_add(patience);
        (0..self.members.len()).try_for_each(|who| self.hear_until(who, patience, deadline, &until))
    }

    /// Hears until something holds for one agent.
    fn listen_to(
        &mut self,
        who: usize,
        patience: Duration,
        until: impl Fn(&Member) -> bool,
    ) -> Result<(), Error> {
        self.hear_until(who, patience, Instant::now().checked_add(patience), &until)
    }

    fn hear_until(
        &mut self,
        who: usize,
        patience: Duration,
        deadline: Option<Instant>,
        until: &impl Fn(&Member) -> bool,
    ) -> Result<(), Error> {
        while !until(&self.members[who]) {
            let heard = match deadline {
                Some(deadline) => {
                    self.heard.recv_timeout(deadline.saturating_duration_since(Instant::now()))
                }
                None => self.heard.recv().map_err(RecvTimeoutError::from),
            };
            let problem = match heard {
                Ok(heard) => {
                    self.hear(heard)?;
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {
                    format!("no answer for {} s", patience.as_secs())
                }
                // All have ended, and this has been heard before.
                Err(RecvTimeoutError::Disconnected) => "has come to its end".to_owned(),
            };
            return Err(self.members[who].failed(problem));
        }
        Ok(())
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        // All at once, so that nobody waits for each of them in turn.
        self.members.iter_mut().for_each(Member::hang_up);
    }
}
