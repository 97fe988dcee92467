//! Options of the cluster benchmark.

use std::fmt;
use std::str::FromStr;

use apus::PollMode;
use apus_workload::Workload;
use apus_workload::{Rate, units};
use clap::Args;
use tempfile::TempDir;

use super::external::ExternalTransport;
use super::kill;
use crate::contenders::keys::ThrowAwayKeys;
use crate::contenders::transport::{self, Apus};
use crate::options::{Repetition, workload};
use crate::slowdown::OURS;
use apus_measure::plan::Plan;
use apus_report::experiment::defaults;
use apus_testbed::error::{Doing, Error, require};
use apus_testbed::fabric::Spec;

/// Minimum share of idle core time at the rate chosen by [`Link::Auto`]; its target is higher. A
/// run with less gets a note. Source: the command line's contract.
pub const IDLE: f64 = 0.4;

/// Options of the cluster benchmark, except for where its hosts are.
#[derive(Clone, Debug, Args)]
#[command(
    mut_arg("seconds", |argument| argument.default_value("5")),
    mut_arg("poll", |argument| argument.default_value(PollMode::Block.to_string()))
)]
pub struct ClusterOptions {
    /// Sizes of the messages: `w1` to `w5` (published workloads), a size in bytes, or a file whose
    /// lines are `SIZE SHARE`, the share of the messages up to that size. No message is empty:
    /// streams have no empty ones
    #[arg(long, value_name = "WORKLOAD", default_value = "w4")]
    pub workload: String,
    /// Longer messages are cut to this: 1 to 64000000. The kernel module and the published
    /// comparisons cut at 1 MB
    #[arg(long, value_name = "BYTES", default_value_t = 1_000_000, allow_negative_numbers = true)]
    pub truncate: u32,
    /// Share of every link that is busy in each direction with requests and replies, headers
    /// included: 0.01 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.8, allow_negative_numbers = true)]
    pub load: f64,
    /// Rate of every link, 1mbit to 100gbit; `auto` tries some, and aims at the one at which the
    /// transport that needs most leaves the cores of this machine idle for 55 % of the time; 40 %
    /// is the least. On hosts of --launch ssh and env: the rate that their links have
    #[arg(long, value_name = "RATE", default_value_t = Link::Auto, value_parser = parse::<Link>)]
    pub link: Link,
    /// The transports: `apus`, `apus-sealed` (every packet encrypted and authenticated, with
    /// throw-away keys), `apus-apart` (the --processes of a host do not schedule together), `tcp`
    /// (one connection between two hosts), `tcp-pool[=N]` (N of them, 4 by default),
    /// `tcp-per-request` (one for each outstanding request); TCP with another congestion control as
    /// `tcp:bbr`. `apus+tcp` runs both at the same time, each with half of the load
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "apus,tcp,tcp-pool,tcp-per-request",
        value_parser = parse::<Mix>
    )]
    pub transports: Vec<Mix>,
    /// Also measure `apus-sealed`
    #[arg(long)]
    pub sealed: bool,
    /// Maximum outstanding requests per host, 1 to 10000; further requests queue, and their latency
    /// includes the wait. The `--client-max` of the kernel module's `cp_node`
    #[arg(long, value_name = "REQUESTS", default_value_t = 200, allow_negative_numbers = true)]
    pub client_max: u32,
    /// Processes of each host, 1 to 16: each is client and server, at a port of its own, with its
    /// share of the requests and of --client-max, and with connections of its own to all processes
    /// of the other hosts. With several, `apus-apart` is measured beside `apus`
    #[arg(long, value_name = "PROCESSES", default_value_t = 1, allow_negative_numbers = true)]
    pub processes: usize,
    /// Halfway through each run, kill a process of the first host (SIGKILL). The others stop
    /// calling it then; what short messages among them suffer before, in the second after and later
    /// is reported, and calls to and from the killed process are counted apart. For several
    /// --processes, runs of 3 seconds or more, and transports of apus alone
    #[arg(long)]
    pub kill_one: bool,
    /// Threads that serve in each process: 1 to 64
    #[arg(long, value_name = "THREADS", default_value_t = 1, allow_negative_numbers = true)]
    pub receivers: usize,
    /// Length, number and seed of the runs, and how threads wait.
    #[command(flatten)]
    pub repetition: Repetition,
    /// Nodes, and the network between them. `link` sets its rate.
    #[arg(skip)]
    pub fabric: Spec,
    /// Parameters of apus by name, where they are not the default.
    #[arg(skip)]
    pub parameters: Vec<(String, u64)>,
    /// Transports of other programs that `transports` may name.
    #[arg(skip)]
    pub external: Vec<ExternalTransport>,
    /// Keys of transports that encrypt, while they are measured.
    #[arg(skip)]
    pub keys: Option<ThrowAwayKeys>,
}

/// Parses the value of an option. The error omits the name of the option, because clap adds it.
fn parse<T: FromStr<Err = Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| match error {
        Error::Option { problem, .. } => problem,
        error => error.to_string(),
    })
}

/// Maximum outstanding requests of a node.
const LARGEST_CLIENT_MAX: u32 = 10_000;

/// Maximum processes of a node.
const MOST_PROCESSES: usize = 16;

/// Maximum serving threads of a process.
const MOST_RECEIVERS: usize = 64;

impl Default for ClusterOptions {
    fn default() -> Self {
        defaults()
    }
}

impl ClusterOptions {
    /// Checks that each value is in its range, and that the workload exists.
    ///
    /// # Errors
    ///
    /// Names the first option that is out of range, and a valid value.
    pub fn check(&self) -> Result<(), Error> {
        let truncate = (1..=Plan::LARGEST).contains(&(self.truncate as usize));
        require(truncate, "truncate", "messages end at 1 to 64000000 bytes; try 1000000")?;
        let load = (0.01..=1.0).contains(&self.load);
        require(load, "load", "a load is 0.01 to 1 of each link; try 0.8")?;
        let client_max = (1..=LARGEST_CLIENT_MAX).contains(&self.client_max);
        require(client_max, "client-max", "1 to 10000 requests are outstanding at most; try 200")?;
        let receivers = (1..=MOST_RECEIVERS).contains(&self.receivers);
        require(receivers, "receivers", "1 to 64 threads serve in each process; try 2")?;
        let processes = (1..=MOST_PROCESSES).contains(&self.processes);
        require(processes, "processes", "each node has 1 to 16 processes; try 4")?;
        require(!self.transports.is_empty(), "transports", "nothing to measure; try apus,tcp")?;
        for (index, mix) in self.transports.iter().enumerate() {
            let twice = format!("{mix} is given twice");
            require(!self.transports[..index].contains(mix), "transports", &twice)?;
        }
        self.repetition.check()?;
        self.check_kill()?;
        let link = match self.link {
            Link::Auto => self.fabric.link,
            Link::Rate(rate) => rate,
        };
        Spec { link, ..self.fabric.clone() }.check()?;
        transport::check_parameters(&self.parameters)?;
        self.workload().map(drop)
    }

    /// Checks that a process can be killed, if the options request it.
    fn check_kill(&self) -> Result<(), Error> {
        if !self.kill_one {
            return Ok(());
        }
        let several = self.processes > 1;
        require(several, "kill-one", "others of its host must remain; try --processes 4")?;
        let long = self.repetition.seconds >= kill::SHORTEST_RUN;
        require(long, "kill-one", "a run has 3 seconds at least, to recover; try --seconds 5")?;
        let problem = "a client over TCP ends with its connection; try --transports apus";
        require(self.transports.iter().all(Mix::is_only_apus), "kill-one", problem)
    }

    /// Returns the options with the transports added by `--sealed` and `--processes`, and with keys
    /// if a transport needs them. The keys are in the folder; dropping the value removes it.
    ///
    /// # Errors
    ///
    /// The folder cannot be created.
    pub(super) fn prepared(&self) -> Result<(Self, Option<TempDir>), Error> {
        let mut prepared = self.clone();
        let mut add = |name| {
            let added = Mix::alone(name);
            if !prepared.transports.contains(&added) {
                prepared.transports.insert(1.min(self.transports.len()), added);
            }
        };
        // The effect of sharing shows in comparison with the same transport without it.
        if self.processes > 1 && self.transports.contains(&Mix::alone("apus")) {
            add(Apus::APART);
        }
        if self.sealed && !self.is_sealed() {
            add(Apus::SEALED);
        }
        let needs_keys = prepared.is_sealed() || !prepared.external.is_empty();
        let folder = needs_keys.then(tempfile::tempdir).transpose();
        let folder = folder.doing(|| "make a folder for throw-away keys".to_owned())?;
        let keys = folder.as_ref().map(|folder| ThrowAwayKeys::create(folder.path()));
        prepared.keys = keys.transpose()?;
        Ok((prepared, folder))
    }

    /// Returns whether a transport with sealed packets takes part.
    fn is_sealed(&self) -> bool {
        self.transports.iter().flat_map(Mix::parts).any(|name| name == Apus::SEALED)
    }

    /// Checks that the options can be measured on provided hosts, where the network cannot be
    /// configured.
    ///
    /// # Errors
    ///
    /// Names the first option that requires a fabric on this machine.
    pub fn check_elsewhere(&self) -> Result<(), Error> {
        let (ours, usual) = (&self.fabric, Spec::default());
        let problem =
            "auto is for links that can be set; give the rate of those of these hosts, like 10gbit";
        require(self.link != Link::Auto, "link", problem)?;
        let problem = "throw-away keys are files of this machine, which these hosts do not have";
        require(!self.sealed && !self.is_sealed(), "sealed", problem)?;
        let problem = "only processes of this machine can be killed; --launch local has them";
        require(!self.kill_one, "kill-one", problem)?;
        let problem =
            "programs of other transports are files of this machine, which these hosts do not have";
        require(self.external.is_empty(), "transports", problem)?;
        let unset = [
            ("buffer", ours.buffer == usual.buffer),
            ("loss", ours.loss == usual.loss),
            ("delay", ours.delay == usual.delay),
            ("uplink", ours.uplink == usual.uplink),
        ];
        let problem =
            "these hosts have a network of their own; only that of --launch local can be set";
        unset.into_iter().try_for_each(|(option, good)| require(good, option, problem))
    }

    /// Returns the workload, truncated.
    ///
    /// # Errors
    ///
    /// No workload has this name.
    pub fn workload(&self) -> Result<Workload, Error> {
        workload(&self.workload, self.truncate)
    }

    /// Returns the transport of another program that has this name.
    pub(super) fn external(&self, name: &str) -> Option<&ExternalTransport> {
        self.external.iter().find(|each| each.name == name)
    }

    /// Returns the value of a parameter of apus; 0 for an unknown name.
    pub(super) fn parameter(&self, name: &str) -> u64 {
        let set = self.parameters.iter().rev().find(|(each, _)| each == name);
        let default =
            || transport::parameters().find(|each| each.name == name).map(|each| each.default);
        set.map(|&(_, value)| value).or_else(default).unwrap_or_default()
    }

    /// Returns the options with links of `mbps`.
    pub(super) fn with_link(&self, mbps: u64) -> Self {
        Self { link: Link::Rate(rate(mbps)), ..self.clone() }
    }

    /// Returns the maximum number of outstanding requests per port.
    pub(super) const fn client_max_of_a_process(&self) -> u32 {
        self.client_max.div_ceil(self.processes as u32)
    }

    /// Returns the name of every participating transport, once.
    pub(super) fn alone(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for name in self.transports.iter().flat_map(Mix::parts) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }
}

/// Rate of the links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Link {
    /// A rate that leaves the cores idle for about 55 % of the time, and at least for [`IDLE`]; if
    /// no tried rate does, the last one.
    Auto,
    /// A fixed rate.
    Rate(Rate),
}

impl FromStr for Link {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        units::rate(text).map(Self::Rate).map_err(|problem| Error::Option {
            option: "link",
            problem: format!("{problem}, or auto"),
        })
    }
}

impl fmt::Display for Link {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => formatter.write_str("auto"),
            Self::Rate(rate) => formatter.write_str(&units::format_rate(*rate)),
        }
    }
}

/// Transports that run at the same time, each with the same share of the load. Usually a single
/// transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix(Vec<String>);

impl Mix {
    /// Returns the mix of one transport, possibly an [`ExternalTransport`].
    #[must_use]
    pub fn alone(name: &str) -> Self {
        Self(vec![name.to_owned()])
    }

    /// Returns the names of the transports.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns whether apus is among them.
    pub(super) fn has_apus(&self) -> bool {
        self.parts().any(|name| name == OURS || name == Apus::SEALED)
    }

    /// Returns whether endpoints of apus are alone in it.
    fn is_only_apus(&self) -> bool {
        self.0.len() == 1 && [OURS, Apus::SEALED, Apus::APART].contains(&&self.0[0][..])
    }

    /// Returns the name of a part in results: the transport, and the concurrent transports.
    #[must_use]
    pub fn row(&self, part: usize) -> String {
        let name = &self.0[part];
        let mut others = self.0.clone();
        others.remove(part);
        if others.is_empty() { name.clone() } else { format!("{name} beside {}", others.join("+")) }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join("+"))
    }
}

impl FromStr for Mix {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let names = text.split('+').map(|name| Ok(transport::parse(name)?.name()));
        Ok(Self(names.collect::<Result<_, Error>>()?))
    }
}

/// Returns a rate that the options have been checked to allow.
pub(super) fn rate(mbps: u64) -> Rate {
    Rate::from_mbps(mbps).expect("a rate within the limits of a fabric")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_the_last_value_that_was_given_or_the_default() {
        let set = |value| ("num_priorities".to_owned(), value);
        assert_eq!(ClusterOptions::default().parameter("num_priorities"), 8);
        let options =
            ClusterOptions { parameters: vec![set(4), set(2)], ..ClusterOptions::default() };
        assert_eq!(options.parameter("num_priorities"), 2);
    }

    #[test]
    fn sealed_adds_a_transport_once_and_keys_for_as_long_as_it_is_measured() {
        let names = |options: &ClusterOptions| {
            options.transports.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let options = ClusterOptions { sealed: true, ..ClusterOptions::default() };
        let (prepared, folder) = options.prepared().unwrap();
        assert_eq!(names(&prepared)[..3], ["apus", "apus-sealed", "tcp"]);
        assert!(prepared.keys.is_some());
        let folder = folder.unwrap();
        let path = folder.path().to_owned();
        assert_eq!(names(&prepared.prepared().unwrap().0), names(&prepared), "it is there already");
        drop(folder);
        assert!(!path.exists());
        let (clear, folder) = ClusterOptions::default().prepared().unwrap();
        assert!(clear.keys.is_none() && folder.is_none());
    }

    #[test]
    fn several_processes_are_measured_without_sharing_as_well() {
        let names = |transports: &[&str], processes| {
            let transports = transports.iter().map(|name| Mix::alone(name)).collect();
            let options = ClusterOptions { transports, processes, ..ClusterOptions::default() };
            let prepared = options.prepared().unwrap().0;
            prepared.transports.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        };
        assert_eq!(names(&["apus", "tcp"], 4), "apus,apus-apart,tcp");
        assert_eq!(names(&["apus", "apus-apart"], 4), "apus,apus-apart");
        assert_eq!(names(&["apus"], 1), "apus");
        assert_eq!(names(&["tcp"], 4), "tcp");
    }

    #[test]
    fn what_runs_together_has_a_row_for_each() {
        let mix: Mix = "apus+tcp-pool=4".parse().unwrap();
        assert_eq!(mix.to_string(), "apus+tcp-pool");
        assert_eq!([mix.row(0), mix.row(1)], ["apus beside tcp-pool", "tcp-pool beside apus"]);
        assert!(mix.has_apus() && !"tcp".parse::<Mix>().unwrap().has_apus());
        assert!("apus+quic".parse::<Mix>().unwrap_err().to_string().contains("`quic`"));
    }

    #[test]
    fn only_a_fabric_can_be_asked_for_everything() {
        let elsewhere = |change: fn(&mut ClusterOptions)| {
            let mut options = ClusterOptions::default().with_link(200);
            change(&mut options);
            options.check_elsewhere().err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(elsewhere(|_| ()), "");
        assert_eq!(elsewhere(|options| options.fabric.mtu = 9000), "");
        assert!(elsewhere(|options| options.kill_one = true).starts_with("kill-one: only"));
        assert!(elsewhere(|options| options.sealed = true).starts_with("sealed: throw-away keys"));
        assert!(elsewhere(|options| options.link = Link::Auto).contains("like 10gbit"));
        assert!(elsewhere(|options| options.fabric.loss = 0.1).starts_with("loss: "));
        assert!(elsewhere(|options| options.fabric.buffer = 5000).starts_with("buffer: "));
    }
}
