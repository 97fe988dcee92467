//! How is a fabric removed?

use apus_lab::fabric::standing::{self, Down, Name};
use clap::Args;

use crate::failure::Failure;
use crate::output;

/// Remove a network
///
/// It is no error if there is none. Programs that still run in its hosts go on without a network.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus fabric down
  apus fabric down --name slow
  apus fabric down --all")]
pub(super) struct Arguments {
    /// Name of the network
    #[arg(long, value_name = "NAME", default_value_t)]
    name: Name,
    /// All networks of this user
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

/// Removes one, or all; one that cannot be removed does not keep the others.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if !arguments.all {
        return take_down(&arguments.name);
    }
    let names = standing::names()?;
    if names.is_empty() {
        output::note("no fabric is up");
    }
    let results: Vec<_> = names.iter().map(take_down).collect();
    results.into_iter().collect()
}

fn take_down(name: &Name) -> Result<(), Failure> {
    output::note(&match standing::down(name)? {
        Down::Ended => format!("fabric `{name}` is down"),
        Down::Stale => {
            format!("fabric `{name}` had ended by itself; what was written down about it is gone")
        }
        Down::Absent => format!("no fabric `{name}` is up"),
    });
    Ok(())
}
