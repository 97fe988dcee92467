//! `apus-lab lab`: known failures of network software and their remedies.

use apus_labs::{contention, handoff, hostile, livelock, small_writes, soak};
use clap::{Args, Subcommand};

use apus_command_line::experiment::ExperimentArguments as Experiment;
use apus_command_line::failure::Failure;

/// Old failures of network software and their cures, measured on this machine
///
/// Each experiment reproduces a failure that is known from the literature, with real packets and
/// without artificial delays, and compares it with its cure. `hostile` and `soak` show no old
/// failure: they check the promises of apus, the first under attack, the second while processes,
/// links and disks fail.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  apus-lab lab livelock --modes interrupt,apus
  apus-lab lab handoff
  apus-lab lab contention
  apus-lab lab small-writes
  apus-lab lab hostile
  apus-lab lab soak"
)]
pub(crate) struct LabArguments {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    Livelock(Experiment<livelock::LivelockOptions>),
    Handoff(Experiment<handoff::HandoffOptions>),
    Contention(Experiment<contention::ContentionOptions>),
    SmallWrites(Experiment<small_writes::SmallWritesOptions>),
    Hostile(Experiment<hostile::HostileOptions>),
    Soak(Experiment<soak::SoakOptions>),
}

/// Runs an experiment and shows its findings.
pub(crate) fn run(arguments: &LabArguments) -> Result<(), Failure> {
    match &arguments.command {
        LabCommand::Livelock(experiment) => experiment.run(),
        LabCommand::Handoff(experiment) => experiment.run(),
        LabCommand::Contention(experiment) => experiment.run(),
        LabCommand::SmallWrites(experiment) => experiment.run(),
        LabCommand::Hostile(experiment) => experiment.run(),
        LabCommand::Soak(experiment) => experiment.run(),
    }
}
