//! The capture of the packets of a variant.
//!
//! The interface is the loopback of a network namespace that contains only both sides and a
//! watcher. An ordinary user may create one and capture its packets if user namespaces are allowed.

use std::path::Path;

use super::anatomy::Anatomy;
use super::side::{SideTask, exchange};
use super::tally::Plan;
use super::variant::Variant;
use super::watch::Captured;
use apus_testbed::error::Error;
use apus_testbed::fabric::IsolatedHost;
use apus_testbed::machine::Cores;
use apus_testbed::process::Spawner;

/// The namespace for the capture.
pub(super) struct Capture {
    _island: IsolatedHost,
    host: Spawner,
}

/// Captured exchanges. Chosen by us: enough for a median, and a variant that waits for a timer in
/// each exchange takes a second.
const EXCHANGES: u64 = 20;

impl Capture {
    /// Creates the namespace. `program` is an agent if its first argument is
    /// [`apus_testbed::process::AGENT`].
    ///
    /// # Errors
    ///
    /// This user may not create namespaces, or a program of the system is missing.
    pub(super) fn prepare(program: &Path) -> Result<Self, Error> {
        let island = IsolatedHost::up()?;
        let host = Spawner::Command { prefix: island.enter(), program: program.into() };
        Ok(Self { _island: island, host })
    }

    /// Runs a variant and returns the anatomy of its exchanges.
    ///
    /// # Errors
    ///
    /// The packets cannot be captured or interpreted, or a side failed.
    pub(super) fn of(
        &self,
        variant: &Variant,
        plan: &Plan,
        cores: Cores,
    ) -> Result<Anatomy, Error> {
        let interface = IsolatedHost::INTERFACE.to_owned();
        let mut watcher = self.host.start(SideTask::Watcher { interface }.task(None))?;
        watcher.address()?;
        let plan = Plan { exchanges: EXCHANGES, time: plan.time.max(LEAST), warm_up: 1, ..*plan };
        let (tally, server) = exchange(variant, &plan, cores, &self.host)?;
        let seen: Captured = watcher.stop()?;
        // The warm-up is one exchange.
        let expected = tally.exchanges as usize + 1;
        let anatomy = Anatomy::of(&seen, server.port(), expected);
        anatomy.map_err(|unclear| Error::Peer(format!("the packets of {variant}: {unclear}")))
    }
}

/// Least nanoseconds for the exchanges, even in a shorter experiment.
const LEAST: u64 = 1_000_000_000;
