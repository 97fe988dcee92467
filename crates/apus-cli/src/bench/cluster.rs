//! What do short messages suffer when the network is busy?

use std::path::{Path, PathBuf};

use apus_lab::cluster::{self, Setting};
use clap::{Args, Command};

use super::asked::{self, Asked};
use super::hosts::Hosts;
use crate::destination::Destination;
use crate::failure::Failure;
use crate::files::Files;
use crate::output;

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
    files: Files,
    /// Write every run as comma-separated values, for spreadsheets; runs by size, by time and by priority come
    /// beside it: FILE-sizes, FILE-short_cdf and FILE-switch
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// Measures, prints the result and writes its files.
pub(super) fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { asked, param, hosts, files, csv } = arguments;
    let mut options = asked.options(&param)?;
    hosts.check(&options)?;
    if hosts.serve()? {
        return Ok(());
    }
    let files = files.open()?;
    let csv = csv.map(|path| Destination::open("--csv", &path).map(|_| path)).transpose()?;
    let venue = hosts.venue(asked.nodes, &mut options)?;
    let findings = cluster::run(&options, &venue)?;
    // Hosts are free before anything is shown.
    drop(venue);
    files.fill(|| findings.html(), || findings.svg_files())?;
    if let Some(path) = csv {
        for (name, content) in findings.csv_files() {
            Destination::open("--csv", &beside(&path, &name))?.fill(content.as_bytes())?;
        }
    }
    if asked.repetition.json {
        output::line(&findings.outcome.json())?;
    } else {
        output::write(findings.to_string())?;
    }
    match findings.missing() {
        [] => Ok(()),
        missing => {
            output::note(&format!("no run of {} succeeded", missing.join(" and of ")));
            Err(Failure::Found(1))
        }
    }
}

/// The file for runs is the one that was asked for; others are called after it.
fn beside(path: &Path, name: &str) -> PathBuf {
    if name == "runs.csv" {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{name}"))
}

/// The command, with the lab's defaults.
pub(super) fn command() -> Command {
    asked::defaults(Arguments::augment_args(Command::new(NAME)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_beside_are_called_after_the_first() {
        let path = Path::new("results/w4.csv");
        assert_eq!(beside(path, "runs.csv"), path);
        assert_eq!(beside(path, "sizes.csv"), Path::new("results/w4-sizes.csv"));
        assert_eq!(beside(Path::new("w4"), "switch.csv"), Path::new("w4-switch.csv"));
    }
}
