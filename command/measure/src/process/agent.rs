//! Parent's handle of a single agent.

use std::net::SocketAddr;
use std::time::Duration;

use rustix::process::Signal;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::clock_offset::ClockOffset;
use super::crew::Crew;
use crate::error::Error;

/// One running side of an experiment. Dropping it ends the agent.
pub struct Agent {
    /// A crew with one member.
    crew: Crew,
}

impl Agent {
    pub(super) const fn new(crew: Crew) -> Self {
        Self { crew }
    }

    /// Waits until the agent is ready, and returns its address.
    ///
    /// # Errors
    ///
    /// The agent failed instead.
    pub fn address(&mut self) -> Result<SocketAddr, Error> {
        Ok(self.crew.addresses()?[0])
    }

    /// Compares the agent's clock with this host's. To be called while the agent is idle.
    ///
    /// # Errors
    ///
    /// The agent failed instead.
    pub fn compare_clocks(&mut self) -> Result<ClockOffset, Error> {
        Ok(self.crew.compare_clocks()?[0])
    }

    /// Starts the agent's work at an instant of this host's clock, translated to the agent's
    /// clock. [`super::Control::begin`] returns it to the agent.
    ///
    /// # Errors
    ///
    /// The agent failed instead.
    ///
    /// # Panics
    ///
    /// `details` cannot be written as JSON.
    pub fn begin(&mut self, details: &impl Serialize, at: u64) -> Result<(), Error> {
        if self.crew.clocks().is_empty() {
            self.crew.compare_clocks()?;
        }
        self.crew.begin_at(&[details], at)
    }

    /// Sleeps for `duration` while the agent runs.
    ///
    /// # Errors
    ///
    /// The agent failed; the call returns at once.
    pub fn sleep(&mut self, duration: Duration) -> Result<(), Error> {
        self.crew.sleep(duration)
    }

    /// Stops the agent's process (SIGSTOP) until [`Agent::resume`]. Dropping the handle ends it all
    /// the same.
    ///
    /// # Errors
    ///
    /// The agent is not a process of this host, or has ended.
    pub fn pause(&mut self) -> Result<(), Error> {
        self.crew.signal(Signal::STOP)
    }

    /// Lets the agent's process run again (SIGCONT).
    ///
    /// # Errors
    ///
    /// The agent is not a process of this host, or has ended.
    pub fn resume(&mut self) -> Result<(), Error> {
        self.crew.signal(Signal::CONT)
    }

    /// Returns the agent's process id; `None` if it is not a process of this host.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.crew.pid(0)
    }

    /// Kills the agent's process (SIGKILL), without a chance for an orderly shutdown, and waits for
    /// its end.
    ///
    /// # Errors
    ///
    /// The agent is not a process of this host, or has ended.
    pub fn kill(mut self) -> Result<(), Error> {
        self.crew.signal(Signal::KILL)
    }

    /// Sends the agent a stop request, and waits for its result.
    ///
    /// # Errors
    ///
    /// The agent failed instead.
    pub fn stop<T: DeserializeOwned>(mut self) -> Result<T, Error> {
        self.crew.stop()?;
        self.result(Duration::ZERO)
    }

    /// Waits for the result of an agent that ends on its own after about `duration`.
    ///
    /// # Errors
    ///
    /// The agent failed instead, or takes far longer than `duration`.
    pub fn result<T: DeserializeOwned>(self, duration: Duration) -> Result<T, Error> {
        Ok(self.crew.results(duration).all()?.remove(0))
    }
}
