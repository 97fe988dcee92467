//! Doctor: finds the causes of slow messages on this host and on the path to a peer.
//!
//! Each check produces findings about the host, with the consequence for messages, the cost if it
//! can be measured within a second, and the commands that fix it. The doctor only reads.
//! `apus doctor` is its command line.
//!
//! | file | content |
//! |---|---|
//! | `host` | access to `/proc` and `/sys` |
//! | `buffers`, `driver`, `power`, `cores`, `load`, `interface` | checks of this host |
//! | `configuration` | checks of the configuration file |
//! | `endpoints`, `groups` | checks of local processes that use apus |
//! | `keys` | checks of the keys for sealed packets |
//! | `peer` | checks of the path to a peer |
//! | `measure` | measurements |
//! | `finding`, `report`, `advice` | severity and presentation |
//!
//! # Invariants
//!
//! - **DOCTOR-1** A measured time never decides the severity of a finding, since it depends on the
//!   moment. Counters and configuration do; so does the counted CPU time of other programs.
//! - **DOCTOR-2** All of `/proc` and `/sys` is read through [`SystemFiles`].
//! - **DOCTOR-3** No check fails because a file, a program or a privilege is missing; its finding
//!   contains less.

mod advice;
mod buffers;
mod configuration;
mod cores;
mod driver;
mod endpoints;
mod finding;
mod groups;
mod host;
mod interface;
mod keys;
mod load;
mod measure;
mod peer;
mod power;
mod report;

pub use advice::advice;
pub use finding::{Finding, Measurement, Severity};
pub use host::SystemFiles;
pub use peer::{Listener, PORT};
pub use report::DoctorReport;

use std::net::SocketAddr;
use std::path::PathBuf;

use ::apus::{Engine, PollMode, Settings, Shards};
use clap::Args;
use serde_json::{Map, Value, json};

use apus_measure::error::{Error, require};
use apus_measure::machine;
use apus_report::experiment::defaults;
use apus_report::progress::Progress;
use apus_report::result::{Outcome, named};

// Options of an examination. The help text of the command describes them, so this type has no
// documentation comment.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[allow(missing_docs, reason = "it would replace the command's explanation")]
pub struct DoctorOptions {
    /// Other end of a path, which runs a [`Listener`] or an apus service.
    #[arg(skip)]
    pub peer: Option<SocketAddr>,
    /// Number of threads that wait for messages at the same time: 1 to 1024; without it, as many as
    /// the configuration starts, or 1
    #[arg(long, value_name = "THREADS", allow_negative_numbers = true)]
    pub threads: Option<usize>,
    /// How these threads wait for packets: `spin`, `block`, or `hybrid=MICROSECONDS`, which spins
    /// for that time and then sleeps (`hybrid` alone: 50); without it, as the configuration says
    #[arg(long, value_name = "MODE")]
    pub poll: Option<PollMode>,
    /// Configuration of this host's endpoints.
    #[arg(skip)]
    pub settings: Settings,
    /// Read the files below this directory instead of /proc and /sys
    #[arg(long, value_name = "DIR", hide = true)]
    pub root: Option<PathBuf>,
}

impl Default for DoctorOptions {
    /// This host, with one thread in the default poll mode, and the default configuration.
    fn default() -> Self {
        defaults()
    }
}

impl DoctorOptions {
    fn check(&self) -> Result<(), Error> {
        let threads = self.threads.is_none_or(|threads| (1..=1024).contains(&threads));
        require(threads, "threads", "1 to 1024 threads may wait; try 4")?;
        let port = self.peer.is_none_or(|peer| peer.port() != 0);
        require(port, "peer", "port 0 cannot be contacted; try 10.0.0.2:4001")?;
        let root = self.root.as_ref().is_none_or(|root| root.is_dir());
        require(root, "root", "there is no such folder; try one that contains proc/ and sys/")
    }

    /// Returns the number of threads that wait for messages.
    fn threads(&self) -> usize {
        let Settings { receivers, engine, .. } = &self.settings;
        let shards = shards(&self.settings);
        let receivers = receivers.unwrap_or(1).max(shards);
        let engines = if matches!(engine, Some(Engine::Dedicated { .. })) { shards } else { 0 };
        self.threads.unwrap_or(receivers + engines)
    }

    fn poll(&self) -> PollMode {
        self.poll.or(self.settings.poll).unwrap_or_default()
    }

    fn config(&self) -> Map<String, Value> {
        let peer = self.peer.map(|peer| ("peer", json!(peer)));
        let rest = [("threads", json!(self.threads())), ("poll", json!(self.poll()))];
        named(peer.into_iter().chain(rest))
    }
}

/// Returns the number of shards of an endpoint with these settings.
fn shards(settings: &Settings) -> usize {
    match settings.shards {
        None => 1,
        Some(Shards::Count(count)) => count.clamp(1, Shards::MAX),
        // docs/configuration.md: one for each core, 8 at most.
        Some(Shards::Auto) => machine::allowed().len().clamp(1, 8),
    }
}

/// Examines this host, and the path to a peer if specified.
///
/// # Errors
///
/// An option is out of range, or the system refuses a socket.
pub fn run(options: &DoctorOptions) -> Result<DoctorReport, Error> {
    options.check()?;
    let host = SystemFiles::new(options.root.clone());
    let DoctorOptions { peer, ref settings, .. } = *options;
    let (threads, poll) = (options.threads(), options.poll());
    let progress = Progress::of(if peer.is_some() { 8 } else { 7 });
    let mut findings = Vec::new();
    // First, since the other checks use CPU time themselves.
    progress.step("load of other programs");
    findings.extend(load::check(&host));
    progress.step("buffers");
    findings.extend(buffers::check(&host, &settings.udp));
    progress.step("features of sockets");
    findings.extend(driver::check(&host, settings));
    progress.step("clocks, frequencies, idle states");
    findings.extend(power::check(&host, poll));
    progress.step("cores");
    findings.extend(cores::check(&host, threads, poll));
    progress.step("running endpoints");
    findings.extend(endpoints::check());
    progress.step("interfaces");
    findings.extend(interface::check(&host, peer, settings));
    findings.extend(configuration::check(settings));
    if let Some(security) = &settings.security {
        findings.extend(keys::check(security));
    }
    if let Some(peer) = peer {
        progress.step(&format!("the path to {peer}"));
        findings.extend(peer::check(&host, peer, settings)?);
    }
    drop(progress);
    Ok(DoctorReport::new(Outcome::new("doctor", options.config()), findings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_are_named() {
        let wrong = [
            DoctorOptions { threads: Some(0), ..DoctorOptions::default() },
            DoctorOptions { peer: Some(([127, 0, 0, 1], 0).into()), ..DoctorOptions::default() },
            DoctorOptions { root: Some("/no/such/folder".into()), ..DoctorOptions::default() },
        ];
        let messages = wrong.map(|options| options.check().unwrap_err().to_string());
        insta::assert_snapshot!(messages.join("\n"), @r"
        threads: 1 to 1024 threads may wait; try 4
        peer: port 0 cannot be contacted; try 10.0.0.2:4001
        root: there is no such folder; try one that contains proc/ and sys/
        ");
    }
    #[test]
    fn threads_and_poll_mode_are_those_of_the_configuration() {
        let of = |text: &str, threads, poll| {
            let settings = text.parse().unwrap();
            let options = DoctorOptions { settings, threads, poll, ..DoctorOptions::default() };
            (options.threads(), options.poll())
        };
        assert_eq!(of("", None, None), (1, PollMode::default()));
        let file = "poll = 'spin'\nreceivers = 3\nshards = 2\nengine = 'dedicated'\n";
        assert_eq!(of(file, None, None), (5, PollMode::Spin));
        assert_eq!(of(file, Some(1), Some(PollMode::Block)), (1, PollMode::Block));
    }
}
