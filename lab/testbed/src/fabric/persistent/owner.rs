//! The process that owns a persistent fabric.
//!
//! It reads the settings of the fabric from standard input, writes success or failure to standard
//! output, and sleeps until it is killed. No cleanup is needed then: the kernel removes the
//! namespaces.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;

use serde::{Deserialize, Serialize};

use super::state::{self, FabricName, FabricState};
use crate::fabric::identity::Process;
use crate::fabric::layout::Layout;
use crate::fabric::network::Fabric;
use crate::fabric::spec::Spec;
use apus_measure::error::{Doing, Error};

/// Hidden first argument that makes a program the owner of a fabric.
pub const OWNER: &str = "__fabric";

/// The fabric to create.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) name: FabricName,
    pub(super) spec: Spec,
}

/// The result of the creation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Up(Layout),
    Failed(String),
}

/// Runs the owner of a fabric. A program whose first argument is [`OWNER`] calls only this
/// function.
#[must_use]
pub fn owner_main() -> ExitCode {
    match own_fabric() {
        Ok(never) => match never {},
        Err(error) => {
            // If this fails, the requesting command has exited, and no other process needs the
            // result.
            let _ = answer(&Answer::Failed(error.to_string()));
            ExitCode::FAILURE
        }
    }
}

/// Creates a fabric and owns it until this process is killed.
fn own_fabric() -> Result<std::convert::Infallible, Error> {
    let mut line = String::new();
    io::stdin().read_line(&mut line).doing(|| "read what to make".to_owned())?;
    let order: Order = serde_json::from_str(&line)
        .map_err(|error| Error::Peer(format!("an invalid order: {error}")))?;
    // Separate session: a fabric outlives the terminal that created it.
    rustix::process::setsid().doing(|| "begin a session".to_owned())?;
    // Leaves the working directory, so that its file system can be unmounted.
    env::set_current_dir("/").doing(|| "go to /".to_owned())?;
    let mut file = state::lock(&order.name)?;
    let made = make(&order.spec);
    let (fabric, state) = match made {
        Ok(made) => made,
        Err(error) => {
            file.remove();
            return Err(error);
        }
    };
    file.write(&state)?;
    answer(&Answer::Up(state.layout)).doing(|| "report that the fabric is up".to_owned())?;
    let _kept = (fabric, file);
    loop {
        thread::park();
    }
}

fn make(spec: &Spec) -> Result<(Fabric, FabricState), Error> {
    let fabric = Fabric::up(spec)?;
    let owner = Process::of(std::process::id())?;
    let state = FabricState { owner, layout: fabric.layout().clone() };
    Ok((fabric, state))
}

fn answer(answer: &Answer) -> io::Result<()> {
    let mut text = serde_json::to_vec(answer)?;
    text.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&text)?;
    stdout.flush()
}
