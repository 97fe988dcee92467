//! `apus-lab bench cluster`: slowdown of short messages when the network is busy.

use apus_bench::cluster::{self, Setting};
use clap::Args;

use super::network::ClusterNetwork;
use apus_command_line::failure::Failure;

/// Slowdown of short messages on a busy network
///
/// Hosts exchange messages of a workload, each of them client and server: requests are due at
/// random instants (Poisson) whether or not earlier requests are done, at a rate that gives every
/// link the given load, over apus and over TCP in several ways. Slowdown is the time from the
/// instant when a request was due to its complete reply, divided by the least time of that size on
/// an idle path, over the fastest transport. The hosts are namespaces of this machine, each on a
/// link of a switch that has eight priorities; or hosts reached by ssh, Slurm, MPI or Kubernetes
/// (docs/launching.md). Each run has fresh processes, fresh connections and a fresh network.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 the question was answered; 1 apus or all others have no result; 2 wrong
arguments. A run that was disturbed or failed is repeated. What cannot be had is said in its row,
and the rest is shown.

Examples:
  apus-lab bench cluster --workload w4 --load 0.8
  apus-lab bench cluster --link 200mbit --transports apus,tcp,apus+tcp --html cluster.html
  apus-lab bench cluster --workload w2 --param num_priorities=1 --json
  apus-lab bench cluster --launch ssh --hosts rack.txt --link 10gbit
  apus-lab bench cluster --launch env --link 25gbit"
)]
pub(super) struct ClusterArguments {
    #[command(flatten)]
    shared: ClusterNetwork,
    /// A setting by its name: any parameter of apus, or one of those that `apus-lab bench sweep`
    /// varies
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<Setting>,
}

/// Measures, and shows the findings.
pub(super) fn run(arguments: &ClusterArguments) -> Result<(), Failure> {
    let ClusterArguments { shared, param } = arguments;
    let mut options = shared.options(param)?;
    if shared.hosts.serve()? {
        return Ok(());
    }
    let results = shared.results()?;
    let venue = shared.hosts.venue(shared.nodes, &mut options)?;
    let findings = cluster::run(&options, &venue)?;
    // Release the hosts before showing results.
    drop(venue);
    results.show(&findings)
}
