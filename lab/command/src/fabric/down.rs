//! `apus-lab fabric down`: removes fabrics.

use apus_testbed::fabric::persistent::{self, FabricName, Removal};
use clap::Args;

use apus_command_line::failure::Failure;
use apus_command_line::output;

/// Remove a fabric
///
/// It is no error if the fabric does not exist. Programs that still run in its hosts continue
/// without a network.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus-lab fabric down
  apus-lab fabric down --name slow
  apus-lab fabric down --all")]
pub(super) struct DownArguments {
    /// Name of the fabric
    #[arg(long, value_name = "NAME", default_value_t)]
    name: FabricName,
    /// Remove all fabrics of this user
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

/// Removes one fabric or all. A fabric that cannot be removed does not prevent the removal of the
/// others.
pub(super) fn run(arguments: &DownArguments) -> Result<(), Failure> {
    if !arguments.all {
        return remove(&arguments.name);
    }
    let names = persistent::names()?;
    if names.is_empty() {
        output::note("no fabric is up");
    }
    let results: Vec<_> = names.iter().map(remove).collect();
    results.into_iter().collect()
}

fn remove(name: &FabricName) -> Result<(), Failure> {
    output::note(&match persistent::down(name)? {
        Removal::Removed => format!("fabric `{name}` is down"),
        Removal::Stale => {
            format!("fabric `{name}` had already ended; its record is removed")
        }
        Removal::Absent => format!("no fabric `{name}` is up"),
    });
    Ok(())
}
