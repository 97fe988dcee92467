//! Persistent fabrics, which outlive the command that created them.
//!
//! A dedicated process, the *owner*, holds the [`Fabric`](super::Fabric). A file describes the
//! fabric. The owner keeps the file locked: the fabric exists while the lock is held, regardless of
//! the file's content.
//!
//! ```text
//!   up       starts the owner and waits until it has written the file
//!   find     reads the file, if it is locked
//!   down     kills the owner, waits for all processes that it started, removes the file
//! ```
//!
//! # Invariants
//!
//! - FABRIC-OWNER-1: A name belongs to one owner at a time, the process that holds the lock.
//! - FABRIC-OWNER-2: A file without an owner is stale. Any command that finds it removes it.

mod owner;
mod state;

pub use owner::{OWNER, owner_main};
pub use state::{FabricName, names};

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::identity::Process;
use super::layout::Layout;
use super::spec::Spec;
use crate::fabric::error::FabricError;
use apus_measure::error::{Doing, Error};
use owner::{Answer, Order};
use state::{FabricState, Lookup};

/// Result of [`down`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The fabric existed and has been removed.
    Removed,
    /// The owner had ended before; its stale file has been removed.
    Stale,
    /// No fabric had this name.
    Absent,
}

/// Creates a persistent fabric. `program` must call [`owner_main`] if its first argument is
/// [`OWNER`].
///
/// # Errors
///
/// A fabric of this name exists, or [`Fabric::up`](super::Fabric::up) fails.
pub fn up(program: &Path, name: &FabricName, spec: &Spec) -> Result<Layout, Error> {
    spec.check()?;
    // Checked here, so that the message does not pass through the owner's answer.
    if matches!(state::find(name)?, Lookup::Starting | Lookup::Up(_)) {
        return Err(FabricError::AlreadyUp { name: name.to_string() }.into());
    }
    let doing = || format!("start the owner of fabric `{name}`");
    let mut owner = Command::new(program)
        .arg(OWNER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // The owner outlives this process: a reader of our standard error must not wait for it.
        .stderr(Stdio::null())
        .spawn()
        .doing(doing)?;
    let order = Order { name: name.clone(), spec: spec.clone() };
    let line = serde_json::to_string(&order).map_err(io::Error::from).doing(doing)?;
    let mut to_owner = owner.stdin.take().expect("piped above");
    writeln!(to_owner, "{line}").doing(doing)?;
    let mut answer = String::new();
    let from_owner = owner.stdout.take().expect("piped above");
    BufReader::new(from_owner.take(MAX_ANSWER)).read_line(&mut answer).doing(doing)?;
    if answer.is_empty() {
        let how = owner.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        return Err(owner_error(name, how));
    }
    match serde_json::from_str(&answer).map_err(io::Error::from).doing(doing)? {
        Answer::Up(layout) => Ok(layout),
        Answer::Failed(why) => {
            // The owner is exiting; its message is more informative than its exit status.
            let _ = owner.wait();
            Err(owner_error(name, why))
        }
    }
}

/// Maximum length of an owner's answer in bytes. Chosen by us: a host takes 40 bytes.
const MAX_ANSWER: u64 = 1 << 20;

fn owner_error(name: &FabricName, said: String) -> Error {
    Error::Agent { agent: format!("fabric `{name}`"), said }
}

/// Returns the layout of the fabric with this name.
///
/// # Errors
///
/// No fabric has this name, or it is still being created.
pub fn find(name: &FabricName) -> Result<Layout, Error> {
    match state::find(name)? {
        Lookup::Up(state) => Ok(state.layout),
        Lookup::Starting => Err(FabricError::Starting { name: name.to_string() }.into()),
        Lookup::Stale => Err(FabricError::Dead { name: name.to_string() }.into()),
        Lookup::Absent => {
            let others = names()?.iter().map(ToString::to_string).collect();
            Err(FabricError::NotUp { name: name.to_string(), others }.into())
        }
    }
}

/// Removes a fabric and waits until all holders of its namespaces have exited. Programs still
/// running in its hosts continue without a network.
///
/// # Errors
///
/// The owner cannot be killed.
pub fn down(name: &FabricName) -> Result<Removal, Error> {
    match state::find(name)? {
        Lookup::Absent => Ok(Removal::Absent),
        Lookup::Stale => state::remove_stale(name).map(|()| Removal::Stale),
        Lookup::Starting => Err(FabricError::Starting { name: name.to_string() }.into()),
        Lookup::Up(state) => {
            let FabricState { owner, layout } = *state;
            owner.end()?;
            // The holders exit when the owner exits; this waits for them.
            layout.holders().try_for_each(Process::end)?;
            state::remove_stale(name)?;
            Ok(Removal::Removed)
        }
    }
}
