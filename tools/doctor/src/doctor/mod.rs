//! What keeps this host, and the path to a peer, from carrying messages fast?
//!
//! Each check answers one question about the host, with what follows from the answer for messages, what it costs
//! here if that can be measured within a second, and the commands that mend it. Nothing is changed.
//!
//! | file | question |
//! |---|---|
//! | `host` | what the system says about itself, in `/proc` and `/sys` |
//! | `buffers`, `driver`, `power`, `cores`, `load`, `interface` | is this host set up for it |
//! | `peer` | what becomes of packets on their way |
//! | `measure` | what something costs here |
//! | `finding`, `report` | how bad it is, and how that is said |
//!
//! # Invariants
//!
//! - **D1** What is measured in time never decides how bad a finding is: it depends on the moment. What is counted
//!   and what is set does; the load of others is counted.
//! - **D2** All of `/proc` and `/sys` is read through [`Host`].
//! - **D3** No check fails because a file, a program or a privilege is missing: it says less.

mod buffers;
mod cores;
mod driver;
mod finding;
mod host;
mod interface;
mod load;
mod measure;
mod peer;
mod power;
mod report;

pub use finding::{Finding, Measured, Severity};
pub use host::Host;
pub use peer::{Listener, PORT};
pub use report::Report;

use std::net::SocketAddr;
use std::path::PathBuf;

use ::apus::PollMode;
use serde_json::{Map, Value, json};

use apus_report::progress::Progress;
use apus_report::result::{Outcome, named};
use apus_testbed::error::{Error, require};

/// What is to be examined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The other end of a path, which runs a [`Listener`] or an apus service.
    pub peer: Option<SocketAddr>,
    /// Threads of the application that wait for messages at the same time: 1 to 1024.
    pub threads: usize,
    /// How they wait.
    pub poll: PollMode,
    /// A folder whose files stand in for the system's own: see [`Host`].
    pub root: Option<PathBuf>,
}

impl Default for Options {
    /// This host, with a thread that waits as endpoints do by default.
    fn default() -> Self {
        Self { peer: None, threads: 1, poll: PollMode::default(), root: None }
    }
}

impl Options {
    fn check(&self) -> Result<(), Error> {
        let threads = (1..=1024).contains(&self.threads);
        require(threads, "threads", "1 to 1024 threads may wait; try 4")?;
        let port = self.peer.is_none_or(|peer| peer.port() != 0);
        require(port, "peer", "nobody listens on port 0; try 10.0.0.2:4001")?;
        let root = self.root.as_ref().is_none_or(|root| root.is_dir());
        require(root, "root", "there is no such folder; try one with proc/ and sys/ in it")
    }

    fn config(&self) -> Map<String, Value> {
        let peer = self.peer.map(|peer| ("peer", json!(peer)));
        let rest = [("threads", json!(self.threads)), ("poll", json!(self.poll))];
        named(peer.into_iter().chain(rest))
    }
}

/// Examines this host, and the path to a peer if there is one.
///
/// # Errors
///
/// An option does not fit, or the system refuses a socket.
pub fn run(options: &Options) -> Result<Report, Error> {
    options.check()?;
    let host = Host::new(options.root.clone());
    let Options { peer, threads, poll, .. } = *options;
    let progress = Progress::of(if peer.is_some() { 7 } else { 6 });
    let mut findings = Vec::new();
    // First, while nothing of our own runs.
    progress.step("who else uses the cores");
    findings.extend(load::check(&host));
    progress.step("buffers");
    findings.extend(buffers::check(&host));
    progress.step("what sockets can do");
    findings.extend(driver::check(&host));
    progress.step("clocks, frequencies, idle states");
    findings.extend(power::check(&host, poll));
    progress.step("cores");
    findings.extend(cores::check(&host, threads, poll));
    progress.step("interfaces");
    findings.extend(interface::check(&host, peer));
    if let Some(peer) = peer {
        progress.step(&format!("the path to {peer}"));
        findings.extend(peer::check(&host, peer)?);
    }
    drop(progress);
    Ok(Report::new(Outcome::new("doctor", options.config()), findings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_named() {
        let wrong = [
            Options { threads: 0, ..Options::default() },
            Options { peer: Some(([127, 0, 0, 1], 0).into()), ..Options::default() },
            Options { root: Some("/no/such/folder".into()), ..Options::default() },
        ];
        let said = wrong.map(|options| options.check().unwrap_err().to_string());
        insta::assert_snapshot!(said.join("\n"), @r"
        threads: 1 to 1024 threads may wait; try 4
        peer: nobody listens on port 0; try 10.0.0.2:4001
        root: there is no such folder; try one with proc/ and sys/ in it
        ");
    }
}
