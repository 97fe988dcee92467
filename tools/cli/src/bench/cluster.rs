//! What do short messages suffer when the network is busy?

use apus_bench::cluster::{self, Setting};
use clap::{Args, Command};

use super::asked::{self, Asked};
use super::hosts::Hosts;
use super::results::{Results, Shown};
use crate::failure::Failure;

/// Name of the command.
pub(super) const NAME: &str = "cluster";

/// What do short messages suffer when the network is busy?
///
/// Hosts exchange messages of a workload, each of them client and server: requests come at random instants
/// (Poisson) whether or not earlier ones are done, so many that every link carries the load that is asked for,
/// over apus and over TCP in several ways. Slowdown is the time from the instant at which a request was due to
/// its complete reply, divided by the least time of that size when nothing else is under way, of whichever
/// transport is the fastest. The hosts are namespaces of this machine, each on a link of a switch that has eight
/// priorities; or those of ssh, Slurm, MPI or Kubernetes (docs/launching.md). Each run has fresh processes,
/// fresh connections and a fresh network.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 done; 1 a transport has no run that succeeded, or nothing could be measured;
2 wrong arguments. What a run that failed does not spoil is shown, with a note of what failed.

Examples:
  apus bench cluster --workload w4 --load 0.8
  apus bench cluster --link 200mbit --transports apus,tcp,apus+tcp --html cluster.html
  apus bench cluster --workload w2 --param num_priorities=1 --json
  apus bench cluster --launch ssh --hosts rack.txt --link 10gbit
  apus bench cluster --launch env --link 25gbit"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    asked: Asked,
    /// A setting by its name: any parameter of apus, or one of those that `apus bench sweep` varies
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<Setting>,
    #[command(flatten)]
    hosts: Hosts,
    #[command(flatten)]
    results: Results,
}

/// Measures, prints the result and writes its files.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { asked, param, hosts, results } = arguments;
    let mut options = asked.options(param)?;
    hosts.check(&options)?;
    if hosts.serve()? {
        return Ok(());
    }
    let results = results.open(asked.repetition.json)?;
    let venue = hosts.venue(asked.nodes, &mut options)?;
    let findings = cluster::run(&options, &venue)?;
    // Hosts are free before anything is shown.
    drop(venue);
    results.show(&Shown {
        outcome: &findings.outcome,
        tables: &findings,
        html: &|| findings.html(),
        svg_files: &|| findings.svg_files(),
        csv_files: &|| findings.csv_files(),
        missing: findings.missing(),
    })
}

/// The command, with the lab's defaults.
pub(super) fn command() -> Command {
    asked::defaults(Arguments::augment_args(Command::new(NAME)))
}
