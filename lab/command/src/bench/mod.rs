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
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    Rtt(contest::ContestArguments),
    Throughput(contest::ContestArguments),
    Rate(contest::ContestArguments),
    Handoff(contest::ContestArguments),
    Local(Experiment<local::LocalOptions>),
    Endpoints(Experiment<endpoints::EndpointsOptions>),
    Overload(Experiment<overload::OverloadOptions>),
    Load(Box<Experiment<load::LoadOptions>>),
    Cluster(Box<cluster::ClusterArguments>),
    Sweep(Box<sweep::SweepArguments>),
    Rpc(rpc::RpcArguments),
}

/// Runs an experiment and shows its findings.
pub(crate) fn run(arguments: &BenchArguments) -> Result<(), Failure> {
    match &arguments.command {
        BenchCommand::Rtt(arguments) => arguments.run(&RTT),
        BenchCommand::Throughput(arguments) => arguments.run(&THROUGHPUT),
        BenchCommand::Rate(arguments) => arguments.run(&RATE),
        BenchCommand::Handoff(arguments) => arguments.run(&HANDOFF),
        BenchCommand::Local(experiment) => experiment.run(),
        BenchCommand::Endpoints(experiment) => experiment.run(),
        BenchCommand::Overload(experiment) => experiment.run(),
        BenchCommand::Load(experiment) => experiment.run(),
        BenchCommand::Cluster(arguments) => cluster::run(arguments),
        BenchCommand::Sweep(arguments) => sweep::run(arguments),
        BenchCommand::Rpc(arguments) => rpc::run(arguments),
    }
}

/// Returns the command with the help and the defaults of each contest.
pub(crate) fn describe(command: clap::Command) -> clap::Command {
    CONTESTS.into_iter().fold(command, |command, contest| {
        command.mut_subcommand(contest.name, |command| contest.describe(command))
    })
}
