//! How does a parent talk to a single agent?

use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::crew::Crew;
use super::offset::ClockOffset;
use crate::error::Error;

/// A side of an experiment at work. Dropping it ends it.
pub struct Agent {
    /// A crew of one.
    crew: Crew,
}

impl Agent {
    pub(super) const fn new(crew: Crew) -> Self {
        Self { crew }
    }

    /// Waits until the agent is ready and tells where it listens.
    ///
    /// # Errors
    ///
    /// It failed instead.
    pub fn address(&mut self) -> Result<SocketAddr, Error> {
        Ok(self.crew.addresses()?[0])
    }

    /// Compares the agent's clock with this host's. To be called while it does nothing else.
    ///
    /// # Errors
    ///
    /// It failed instead.
    pub fn compare_clocks(&mut self) -> Result<ClockOffset, Error> {
        Ok(self.crew.compare_clocks()?[0])
    }

    /// Lets the agent begin at an instant of this host's clock, which is translated to its own. It takes
    /// the order with [`super::Control::begin`].
    ///
    /// # Errors
    ///
    /// It failed instead.
    ///
    /// # Panics
    ///
    /// The details cannot be written as JSON.
    pub fn begin(&mut self, details: &impl Serialize, at: u64) -> Result<(), Error> {
        if self.crew.clocks().is_empty() {
            self.crew.compare_clocks()?;
        }
        self.crew.begin_at(&[details], at)
    }

    /// Asks the agent to come to an end, and waits for its result.
    ///
    /// # Errors
    ///
    /// It failed instead.
    pub fn stop<T: DeserializeOwned>(mut self) -> Result<T, Error> {
        self.crew.stop()?;
        self.result(Duration::ZERO)
    }

    /// Waits for the result of an agent that comes to an end by itself after about `duration`.
    ///
    /// # Errors
    ///
    /// It failed instead, or takes far longer than that.
    pub fn result<T: DeserializeOwned>(self, duration: Duration) -> Result<T, Error> {
        Ok(self.crew.results(duration).all()?.remove(0))
    }
}
