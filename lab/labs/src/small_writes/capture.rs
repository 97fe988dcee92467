//! The capture of the packets of a variant.
//!
//! The interface is the loopback of a network namespace that contains only both sides and a watcher.
//! An ordinary user may create one where user namespaces are allowed, and may capture its packets.

use std::path::Path;

use super::Variant;
use super::anatomy::Anatomy;
use super::side::{Part, exchange};
use super::tally::Plan;
use super::watch::Captured;
use apus_testbed::error::Error;
use apus_testbed::fabric::IsolatedHost;
use apus_testbed::machine::Cores;
use apus_testbed::process::Spawner;

/// The namespace in which packets are captured.
pub(super) struct Capture {
    _island: IsolatedHost,
    host: Spawner,
}

/// Exchanges of which packets are read. Chosen by us: enough for a median, and what waits for a timer in each is over in a
/// second.
const EXCHANGES: u64 = 20;

impl Capture {
    /// Prepares it. `program` is an agent when its first argument is [`apus_testbed::process::AGENT`].
    ///
    /// # Errors
    ///
    /// This user may not create namespaces, or a program of the system is missing.
    pub(super) fn prepare(program: &Path) -> Result<Self, Error> {
        let island = IsolatedHost::up()?;
        let host = Spawner::Command { prefix: island.enter(), program: program.into() };
        Ok(Self { _island: island, host })
    }

    /// Returns what happened between the two sides of a variant.
    ///
    /// # Errors
    ///
    /// The packets may not be seen, or cannot be understood; or a side failed.
    pub(super) fn of(
        &self,
        variant: &Variant,
        plan: &Plan,
        cores: Cores,
    ) -> Result<Anatomy, Error> {
        let interface = IsolatedHost::INTERFACE.to_owned();
        let mut watcher = self.host.start(Part::Watcher { interface }.task(None))?;
        watcher.address()?;
        let plan = Plan { exchanges: EXCHANGES, time: plan.time.max(LEAST), warm_up: 1, ..*plan };
        let (tally, server) = exchange(variant, &plan, cores, &self.host)?;
        let seen: Captured = watcher.stop()?;
        // One was warm-up.
        let expected = tally.exchanges as usize + 1;
        let anatomy = Anatomy::of(&seen, server.port(), expected);
        anatomy.map_err(|unclear| Error::Peer(format!("the packets of {variant}: {unclear}")))
    }
}

/// Nanoseconds that exchanges may take at least, however short the experiment is.
const LEAST: u64 = 1_000_000_000;
