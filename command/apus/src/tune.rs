//! `apus tune`: the best settings for this host.

use std::path::PathBuf;

use apus_doctor::tune::{self, TuneOptions};
use apus_measure::process::Spawner;
use clap::Args;

use apus_command_line::configuration::Configuration;
use apus_command_line::destination::Destination;
use apus_command_line::failure::Failure;
use apus_command_line::output;

/// Try settings on this host, and write the configuration file that it recommends, with the
/// evidence
///
/// One setting after the other: its values take turns, each with fresh processes, and are compared
/// with the value in force pair by pair inside each round. A value is recommended if it is proven
/// to be better for a goal (95 %, by 2 % at least), and not proven to be worse for another one.
/// Both sides run on this host: for settings that depend on the network use
/// `apus-lab bench sweep --launch ssh`, and for faults of the host `apus doctor`.
///
/// The file goes to standard output, behind the table, unless --out is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus tune --out apus.toml
  apus tune --goals latency --seconds 20
  apus tune --goals rate,throughput --config apus.toml --json")]
pub(crate) struct TuneArguments {
    #[command(flatten)]
    options: TuneOptions,
    /// Write the recommended configuration to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    configuration: Configuration,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// Tries settings, and prints and writes the recommendation.
pub(crate) fn run(arguments: &TuneArguments) -> Result<(), Failure> {
    let TuneArguments { options, out, configuration, json } = arguments;
    let settings = configuration.read()?;
    let options = TuneOptions { settings, ..options.clone() };
    options.check()?;
    let out = out.as_deref().map(|path| Destination::open("--out", path)).transpose()?;
    let findings = tune::run(&options, &Spawner::this_program()?)?;
    let file = findings.toml();
    let is_written = out.is_some();
    if let Some(out) = out {
        out.fill(file.as_bytes())?;
    }
    if *json {
        return output::line(&findings.outcome.json());
    }
    output::write(findings.to_string())?;
    if is_written { Ok(()) } else { output::write(format!("\n{file}")) }
}
