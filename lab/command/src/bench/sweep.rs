//! `apus-lab bench sweep`: effect of settings on short messages.

use std::path::PathBuf;

use apus_bench::cluster::{self, Setting};
use clap::Args;

use super::network::ClusterNetwork;
use apus_command_line::failure::Failure;

/// Effect of settings on short messages: the cluster benchmark, once for each value
///
/// Each setting that has several values is varied alone, while the others keep the values of the
/// options; a setting with a single value has it all the time. Settings are all parameters of apus
/// (unsched_bytes, max_overcommit, num_priorities, max_incoming, burst_bytes,
/// max_nic_est_backlog_usecs, defer_min_bytes, grant_fifo_fraction, receive_batch, ...; a wrong
/// name lists them) and these options: buffer, client_max, link, load, loss, mtu, nodes, processes,
/// receivers, and poll_usecs, the time in microseconds that threads spin before they sleep (0: they
/// sleep at once). `--link auto` is decided once; the base of slowdowns is found once for each rate
/// and MTU; transports other than apus are measured once if a parameter of apus is varied.
/// `apus-lab sim run --param` does the same in the simulator.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 the question was answered; 1 fewer than two rows have a result; 2 wrong
arguments. A run that was disturbed or failed is repeated. What cannot be had is said in its row,
and the rest is shown.

Examples:
  apus-lab bench sweep --param poll_usecs=0,10,50 --transports apus,tcp
  apus-lab bench sweep --workload w2 --param num_priorities=8,4,2,1 --html priorities.html
  apus-lab bench sweep --param max_incoming=20000,60000 --param max_overcommit=1,2,8 --link 100mbit --out sweep.jsonl
  apus-lab bench sweep --param load=0.5,0.6,0.7,0.8,0.9 --runs 3 --json"
)]
pub(super) struct SweepArguments {
    #[command(flatten)]
    shared: ClusterNetwork,
    /// A setting and its values
    #[arg(long, value_name = "NAME=VALUE,VALUE", required = true)]
    param: Vec<Setting>,
    /// Keep what has been measured in this file, and measure only what it lacks
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Measures, and shows the findings.
pub(super) fn run(arguments: &SweepArguments) -> Result<(), Failure> {
    let SweepArguments { shared, param, out } = arguments;
    let mut options = shared.options(&[])?;
    if shared.hosts.serve()? {
        return Ok(());
    }
    let results = shared.results()?;
    let venue = shared.hosts.venue(shared.nodes, &mut options)?;
    let findings = cluster::sweep(&options, param, &venue, out.as_deref())?;
    // Release the hosts before showing results.
    drop(venue);
    results.show(&findings)
}
