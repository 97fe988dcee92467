//! Who owns a fabric that stays?
//!
//! A process that is told on its standard input what to make, says on its standard output whether that
//! worked, and sleeps until somebody ends it. Nothing needs to be done then: the kernel does it.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;

use serde::{Deserialize, Serialize};

use super::state::{self, Name, State};
use crate::error::{Doing, Error};
use crate::fabric::{Fabric, Layout, Process, Spec};

/// The hidden argument that makes a program a keeper.
pub const KEEPER: &str = "__fabric";

/// What a keeper is to make.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) name: Name,
    pub(super) spec: Spec,
}

/// What became of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Up(Layout),
    Failed(String),
}

/// Is a keeper: call this when the program's first argument is [`KEEPER`], and do nothing else.
#[must_use]
pub fn keeper_main() -> ExitCode {
    match keep() {
        Ok(never) => match never {},
        Err(error) => {
            // Whoever asked is gone if this fails, and nobody else wants to know.
            let _ = answer(&Answer::Failed(error.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// Makes a fabric and keeps it.
fn keep() -> Result<std::convert::Infallible, Error> {
    let mut line = String::new();
    io::stdin().read_line(&mut line).doing(|| "read what to make".to_owned())?;
    let order: Order = serde_json::from_str(&line)
        .map_err(|error| Error::Peer(format!("not what a keeper is told: {error}")))?;
    // A session of its own: the end of a terminal is not the end of the fabric.
    rustix::process::setsid().doing(|| "begin a session".to_owned())?;
    // Nothing is to stay mounted because of it.
    env::set_current_dir("/").doing(|| "go to /".to_owned())?;
    let mut file = state::claim(&order.name)?;
    let made = make(&order.spec);
    let (fabric, state) = match made {
        Ok(made) => made,
        Err(error) => {
            file.remove();
            return Err(error);
        }
    };
    file.write(&state)?;
    answer(&Answer::Up(state.layout)).doing(|| "say that it is up".to_owned())?;
    let _kept = (fabric, file);
    loop {
        thread::park();
    }
}

fn make(spec: &Spec) -> Result<(Fabric, State), Error> {
    let fabric = Fabric::up(spec)?;
    let keeper = Process::of(std::process::id())?;
    let state = State { keeper, layout: fabric.layout().clone() };
    Ok((fabric, state))
}

fn answer(answer: &Answer) -> io::Result<()> {
    let mut text = serde_json::to_vec(answer)?;
    text.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&text)?;
    stdout.flush()
}
