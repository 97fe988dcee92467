//! Options of the benchmark.

use std::path::PathBuf;
use std::str::FromStr;

use apus::PollMode;
use apus_report::experiment::defaults;
use apus_testbed::error::{Error, require};
use clap::Args;
use serde::{Serialize, Serializer};

use super::works::Work;

/// Names of peers that are always known.
pub(super) const PEERS: [&str; 3] = ["apus", "local", "sshfs"];

/// Compare the file service with a local directory and other file services
///
/// Each work is done by each peer in turn: `apus` (served and mounted by this command), `local` (a
/// directory in memory), `sshfs` if it is installed, and mounted paths that --peer names. The
/// directories of the servers are in memory, so no disk takes part. Rows are the median over the
/// runs. Times of works that write end when everything is at the server. `cold` means a new mount,
/// which a path of --peer cannot have.
///
/// The network is the loopback interface, with a round-trip time of about 0.02 ms. --rtt adds
/// longer ones: client and server are in network namespaces then, with a program between them that
/// delays each packet, which takes root. `local` and the paths of --peer are not behind it.
#[derive(Clone, Debug, PartialEq, Args, Serialize)]
#[command(after_help = "Examples:
  apus-lab fs bench
  apus-lab fs bench --rtt 2.3 --runs 5
  apus-lab fs bench --only apus --work sync-500,untar-443,find-443 --json
  apus-lab fs bench --peer nfs=/mnt/nfs --peer gluster=/mnt/gluster --html files.html")]
pub struct BenchOptions {
    /// Number of times everything is repeated, 1 to 1000; results are the median over the runs, the
    /// least and the greatest
    #[arg(long, value_name = "RUNS", default_value_t = 3, allow_negative_numbers = true)]
    pub runs: usize,
    /// Seed of everything random: the same seed draws the same trees of files
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Round-trip times in milliseconds to measure in addition to the loopback interface, 0.1 to
    /// 1000, with commas between them
    #[arg(long, value_name = "MILLISECONDS", value_delimiter = ',', allow_negative_numbers = true)]
    pub rtt: Vec<f64>,
    /// How `apus fs serve` and `apus fs mount` wait: `spin`, `block`, or `hybrid=MICROSECONDS`,
    /// which spins for that time and then sleeps (`hybrid` alone: 50)
    #[arg(long, value_name = "MODE", default_value_t)]
    pub poll: PollMode,
    /// A mounted file system to measure, NAME=PATH; may be repeated. A new directory in it is used,
    /// and removed
    #[arg(long, value_name = "NAME=PATH")]
    pub peer: Vec<GivenPeer>,
    /// Only these peers, with commas between them: apus, local, sshfs, and names of --peer
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Only these works, by the names of their rows, with commas between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub work: Vec<String>,
}

/// A mounted file system with the name of its rows: `NAME=PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenPeer {
    /// The name of its rows.
    pub name: String,
    /// A directory on it.
    pub path: PathBuf,
}

impl FromStr for GivenPeer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        match text.split_once('=') {
            Some((name, path))
                if !name.is_empty() && name.chars().all(is_plain) && !path.is_empty() =>
            {
                if PEERS.contains(&name) {
                    return Err(format!(
                        "this command has a peer `{name}` of its own; try `my-{name}={path}`"
                    ));
                }
                Ok(Self { name: name.to_owned(), path: path.into() })
            }
            _ => {
                Err("it is NAME=PATH, with letters and digits in NAME; try `nfs=/mnt/nfs`"
                    .to_owned())
            }
        }
    }
}

impl Serialize for GivenPeer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}={}", self.name, self.path.display()))
    }
}

impl Default for BenchOptions {
    fn default() -> Self {
        defaults()
    }
}

impl BenchOptions {
    /// Checks that everything can be measured.
    pub(super) fn check(&self) -> Result<(), Error> {
        require((1..=1000).contains(&self.runs), "runs", "there are 1 to 1000 runs; try 3")?;
        let good = |rtt: &f64| (0.1..=1000.0).contains(rtt);
        require(self.rtt.iter().all(good), "rtt", "a round trip takes 0.1 to 1000 ms; try 2.3")?;
        for peer in &self.peer {
            let twice = self.peer.iter().filter(|other| other.name == peer.name).count() > 1;
            require(!twice, "peer", &format!("two peers have the name `{}`", peer.name))?;
            let problem = format!("{} is no directory; try a mounted path", peer.path.display());
            require(peer.path.is_dir(), "peer", &problem)?;
        }
        let given = self.peer.iter().map(|peer| &peer.name[..]);
        let peers: Vec<&str> = PEERS.into_iter().chain(given).collect();
        known("only", &self.only, &peers)?;
        known("work", &self.work, &Work::names())
    }

    /// Whether the peer with that name is measured.
    pub(super) fn has_peer(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// Returns the works that are measured, in their order.
    pub(super) fn works(&self) -> Vec<&'static Work> {
        let selected =
            |work: &&Work| self.work.is_empty() || self.work.iter().any(|name| name == work.name);
        Work::ALL.iter().filter(selected).collect()
    }
}

fn known(option: &'static str, chosen: &[String], names: &[&str]) -> Result<(), Error> {
    match chosen.iter().find(|name| !names.contains(&name.as_str())) {
        None => Ok(()),
        Some(unknown) => {
            let problem = format!("there is no `{unknown}`; there are {}", names.join(", "));
            Err(Error::Option { option, problem })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_testbed::error::option_problem;

    #[test]
    fn what_cannot_be_measured_is_refused_by_name() {
        let refused = |change: fn(&mut BenchOptions)| option_problem(BenchOptions::check, change);
        assert_eq!(refused(|_| ()), "");
        assert!(refused(|options| options.runs = 0).starts_with("runs: "));
        assert!(refused(|options| options.rtt = vec![2.3, f64::NAN]).starts_with("rtt: "));
        let only = refused(|options| options.only = vec!["nfs".to_owned()]);
        assert!(only.starts_with("only: there is no `nfs`") && only.contains("sshfs"), "{only}");
        let work = refused(|options| options.work = vec!["sync".to_owned()]);
        assert!(work.starts_with("work: ") && work.contains("sync-500"), "{work}");
        let peer = refused(|options| options.peer = vec!["nfs=/no/such/path".parse().unwrap()]);
        assert!(peer.starts_with("peer: /no/such/path"), "{peer}");
        let twice = refused(|options| {
            options.peer = vec!["a=/".parse().unwrap(), "a=/tmp".parse().unwrap()];
        });
        assert!(twice.contains("name `a`"), "{twice}");
    }

    #[test]
    fn a_given_peer_has_a_name_and_a_path() {
        let peer: GivenPeer = "nfs=/mnt/a=b".parse().unwrap();
        assert_eq!((&peer.name[..], peer.path), ("nfs", "/mnt/a=b".into()));
        for wrong in ["", "/mnt", "=/mnt", "nfs=", "a b=/mnt", "local=/mnt"] {
            assert!(wrong.parse::<GivenPeer>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn works_keep_their_order() {
        let work = vec!["create".to_owned(), "sync-500".to_owned()];
        let options = BenchOptions { work, ..BenchOptions::default() };
        let names: Vec<_> = options.works().iter().map(|work| work.name).collect();
        assert_eq!(names, ["sync-500", "create"]);
        assert_eq!(BenchOptions::default().works().len(), Work::ALL.len());
    }
}
