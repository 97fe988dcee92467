//! `apus-lab bench`: apus compared with UDP, TCP and Unix sockets.
//!
//! ```text
//!   contest     contenders measured in turns: rtt, throughput, rate, handoff
//!   cluster     hosts on rate-limited links, loaded with the messages of a workload
//!   sweep       the cluster benchmark, once for each value of some settings
//!   rpc         typed services and tonic, in a separate program
//!     network     options and network of cluster and sweep
//!     hosts       hosts of cluster and sweep
//! ```

mod cluster;
mod contest;
mod hosts;
mod network;
mod rpc;
mod sweep;

use apus_bench::contest::{CONTESTS, HANDOFF, RATE, RTT, THROUGHPUT};
use apus_bench::{endpoints, load, local, overload};
use clap::{Args, Subcommand};

use apus_command_line::experiment::ExperimentArguments as Experiment;
use apus_command_line::failure::Failure;

/// Measure apus beside UDP, TCP and Unix sockets
///
/// The contenders of an experiment take turns in one run, each side in its own process. Every
/// figure is a median over the runs; ratios are computed inside each run. `cluster` and `sweep`
/// measure on links that are busy; `local` processes of one host; the others on this machine's
/// loopback, where apus goes over UDP as between hosts. Client and server each have their own core
/// if there are enough.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  apus-lab bench rtt
  apus-lab bench rate --json --runs 3
  apus-lab bench cluster --workload w4 --load 0.8"
)]
pub(crate) struct BenchArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Rtt(contest::ContestArguments),
    Throughput(contest::ContestArguments),
    Rate(contest::ContestArguments),
    Handoff(contest::ContestArguments),
    Local(Experiment<local::Options>),
    Endpoints(Experiment<endpoints::Options>),
    Overload(Experiment<overload::Options>),
    Load(Box<Experiment<load::Options>>),
    Cluster(Box<cluster::ClusterArguments>),
    Sweep(Box<sweep::SweepArguments>),
    Rpc(rpc::RpcArguments),
}

/// Runs an experiment and shows its findings.
pub(crate) fn run(arguments: &BenchArguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Rtt(arguments) => arguments.run(&RTT),
        Command::Throughput(arguments) => arguments.run(&THROUGHPUT),
        Command::Rate(arguments) => arguments.run(&RATE),
        Command::Handoff(arguments) => arguments.run(&HANDOFF),
        Command::Local(experiment) => experiment.run(),
        Command::Endpoints(experiment) => experiment.run(),
        Command::Overload(experiment) => experiment.run(),
        Command::Load(experiment) => experiment.run(),
        Command::Cluster(arguments) => cluster::run(arguments),
        Command::Sweep(arguments) => sweep::run(arguments),
        Command::Rpc(arguments) => rpc::run(arguments),
    }
}

/// Returns the command with the help and the defaults of each contest.
pub(crate) fn describe(command: clap::Command) -> clap::Command {
    CONTESTS.into_iter().fold(command, |command, contest| {
        command.mut_subcommand(contest.name, |command| contest.describe(command))
    })
}
