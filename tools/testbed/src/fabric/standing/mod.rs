//! How does a fabric outlive the command that made it?
//!
//! A process of its own, the *keeper*, owns the [`Fabric`](super::Fabric) and does nothing else. What it
//! owns is written down in a file, which the keeper keeps locked: whether the fabric is there is whether
//! the lock is held, whatever the file says.
//!
//! ```text
//!   up       starts the keeper and waits until it has written the file
//!   find     reads the file, if it is locked
//!   down     ends the keeper, waits for everything that it held, removes the file
//! ```
//!
//! # Invariants
//!
//! - **S1** A name belongs to one keeper at a time: it has the lock.
//! - **S2** A file without a keeper means nothing, and is removed by whoever meets it.

mod keeper;
mod state;

pub use keeper::{KEEPER, keeper_main};
pub use state::{Name, names};

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::layout::Layout;
use super::refusal::Refusal;
use super::spec::Spec;
use crate::error::{Doing, Error};
use keeper::{Answer, Order};
use state::{Found, State};

/// What taking a fabric down has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Down {
    /// It was there, and is gone.
    Ended,
    /// It had ended before, and not by this; what was written down about it is gone.
    Stale,
    /// There was none.
    Absent,
}

/// Makes a fabric that stays. `program` is one that calls [`keeper_main`] when its first argument is
/// [`KEEPER`].
///
/// # Errors
///
/// There is one of that name, or [`Fabric::up`](super::Fabric::up) fails.
pub fn up(program: &Path, name: &Name, spec: &Spec) -> Result<Layout, Error> {
    spec.check()?;
    // Said here, because the keeper's own words would pass through its answer.
    if matches!(state::find(name)?, Found::Coming | Found::Up(_)) {
        return Err(Error::Fabric(Refusal::AlreadyUp { name: name.to_string() }));
    }
    let doing = || format!("start the keeper of fabric `{name}`");
    let mut keeper = Command::new(program)
        .arg(KEEPER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // It lives on; whoever reads our standard error should not have to wait for that.
        .stderr(Stdio::null())
        .spawn()
        .doing(doing)?;
    let order = Order { name: name.clone(), spec: spec.clone() };
    let line = serde_json::to_string(&order).map_err(io::Error::from).doing(doing)?;
    let mut to_keeper = keeper.stdin.take().expect("piped above");
    writeln!(to_keeper, "{line}").doing(doing)?;
    let mut answer = String::new();
    let from_keeper = keeper.stdout.take().expect("piped above");
    BufReader::new(from_keeper.take(LONGEST_ANSWER)).read_line(&mut answer).doing(doing)?;
    if answer.is_empty() {
        let how = keeper.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        return Err(keeper_said(name, how));
    }
    match serde_json::from_str(&answer).map_err(io::Error::from).doing(doing)? {
        Answer::Up(layout) => Ok(layout),
        Answer::Failed(why) => {
            // It ends now; whatever its status says, it has said more.
            let _ = keeper.wait();
            Err(keeper_said(name, why))
        }
    }
}

/// Longest line that a keeper answers with. Ours: a host takes 40 bytes of it.
const LONGEST_ANSWER: u64 = 1 << 20;

fn keeper_said(name: &Name, said: String) -> Error {
    Error::Agent { agent: format!("fabric `{name}`"), said }
}

/// The fabric of that name.
///
/// # Errors
///
/// There is none, or it is not ready yet.
pub fn find(name: &Name) -> Result<Layout, Error> {
    match state::find(name)? {
        Found::Up(state) => Ok(state.layout),
        Found::Coming => Err(Error::Fabric(Refusal::Coming { name: name.to_string() })),
        Found::Stale => Err(Error::Fabric(Refusal::Dead { name: name.to_string() })),
        Found::Absent => {
            let others = names()?.iter().map(ToString::to_string).collect();
            Err(Error::Fabric(Refusal::NotUp { name: name.to_string(), others }))
        }
    }
}

/// Takes a fabric down, and waits until all that held it has ended. Programs that still run in its hosts
/// go on without a network.
///
/// # Errors
///
/// The keeper cannot be ended.
pub fn down(name: &Name) -> Result<Down, Error> {
    match state::find(name)? {
        Found::Absent => Ok(Down::Absent),
        Found::Stale => state::forget(name).map(|()| Down::Stale),
        Found::Coming => Err(Error::Fabric(Refusal::Coming { name: name.to_string() })),
        Found::Up(state) => {
            let State { keeper, layout } = *state;
            keeper.end()?;
            // They end by themselves; this waits for it.
            layout.holders().try_for_each(super::Process::end)?;
            state::forget(name)?;
            Ok(Down::Ended)
        }
    }
}
