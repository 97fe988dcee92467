//! The arguments that `apus-lab bench cluster` and `apus-lab bench sweep` share.

use std::path::PathBuf;

use apus_bench::cluster::{ClusterOptions, Setting};
use clap::Args;

use super::hosts::Hosts;
use crate::network::Network;
use apus_command_line::experiment::{OpenResults, Results};
use apus_command_line::failure::Failure;

/// Options, hosts and network of the cluster benchmark, and where its findings go.
#[derive(Debug, Args)]
pub(super) struct ClusterNetwork {
    #[command(flatten)]
    options: ClusterOptions,
    /// Hosts, each of them client and server: 2 to 128 [default: 8, or all hosts of --launch ssh
    /// and env]
    #[arg(long, value_name = "HOSTS", allow_negative_numbers = true)]
    pub(super) nodes: Option<usize>,
    #[command(flatten)]
    network: Network,
    #[command(flatten)]
    pub(super) hosts: Hosts,
    #[command(flatten)]
    results: Results,
    /// Write every run as comma-separated values, for spreadsheets. Runs by size, by time and by
    /// priority go into files beside it: FILE-sizes, FILE-short_cdf and FILE-switch
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

impl ClusterNetwork {
    /// Returns the options with these settings.
    ///
    /// # Errors
    ///
    /// A value is out of range, or cannot be measured on these hosts.
    pub(super) fn options(&self, settings: &[Setting]) -> Result<ClusterOptions, Failure> {
        let mut options = self.options.clone();
        let nodes = self.nodes.unwrap_or(options.fabric.nodes);
        // `--link` replaces the rate.
        options.fabric = self.network.spec(nodes, options.fabric.link);
        Setting::apply_all(settings, &mut options)?;
        options.check()?;
        self.hosts.check(&options)?;
        Ok(options)
    }

    /// Checks that every file can be written.
    ///
    /// # Errors
    ///
    /// [`Failure::Argument`] if one cannot.
    pub(super) fn results(&self) -> Result<OpenResults, Failure> {
        self.results.open()?.with_csv(self.csv.as_deref())
    }
}
