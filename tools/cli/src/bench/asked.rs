//! What can be asked of the cluster benchmark?

use apus_bench::cluster::{Link, Mix, Options, Setting};
use apus_testbed::Error;
use clap::{Args, Command};

use crate::failure::Failure;
use crate::network::Network;
use crate::repetition::{Repetition, with_defaults};

/// The messages, the hosts and the links, and who carries the messages.
#[derive(Debug, Args)]
pub(super) struct Asked {
    /// Whose messages: `w1` to `w5` (published workloads), a size in bytes, or a file whose lines are
    /// `SIZE SHARE`, the share of the messages up to that size
    #[arg(long, value_name = "WORKLOAD")]
    workload: String,
    /// Longer messages are as long as this: 1 to 64000000
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    truncate: u32,
    /// Share of every link that is busy in each direction with requests and replies, headers included:
    /// 0.01 to 1
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    load: f64,
    /// Hosts, each of them client and server: 2 to 128 [default: 8, or all hosts of --launch ssh and env]
    #[arg(long, value_name = "HOSTS", allow_negative_numbers = true)]
    pub(super) nodes: Option<usize>,
    /// Rate of every link, 1mbit to 100gbit; `auto` tries some, and aims at the one at which the transport that
    /// needs most leaves the cores of this machine idle for 55 % of the time; 40 % is the least. On hosts that
    /// somebody else provides: how fast their links are
    #[arg(long, value_name = "RATE", value_parser = link)]
    link: Link,
    /// Who carries the messages: `apus`, `tcp` (one connection between two hosts), `tcp-pool[=N]` (N of them,
    /// 4 if it is not said), `tcp-per-request` (one for each outstanding request); TCP with another congestion
    /// control as `tcp:bbr`. `apus+tcp` runs both at the same time, each with half of the load
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = mix)]
    transports: Vec<Mix>,
    /// Requests under way at most at each host, 1 to 10000; those that are due besides wait, and their time
    /// runs
    #[arg(long, value_name = "REQUESTS", allow_negative_numbers = true)]
    client_max: u32,
    /// Ports of each host, 1 to 16: each is an agent of its own, client and server, with its share of the requests
    /// and of --client-max, and with connections of its own to all ports of the other hosts
    #[arg(long, value_name = "PORTS", allow_negative_numbers = true)]
    ports: usize,
    /// Threads that serve at each port: 1 to 64
    #[arg(long, value_name = "THREADS", allow_negative_numbers = true)]
    receivers: usize,
    #[command(flatten)]
    pub(super) repetition: Repetition,
    #[command(flatten)]
    network: Network,
}

impl Asked {
    /// The same for apus-lab, with these settings besides.
    pub(super) fn options(&self, settings: &[Setting]) -> Result<Options, Failure> {
        let Repetition { seconds, runs, seed, poll, .. } = self.repetition;
        let usual = Options::default();
        let nodes = self.nodes.unwrap_or(usual.fabric.nodes);
        // The rate is decided by `link`.
        let fabric = self.network.spec(nodes, usual.fabric.link);
        let mut options = Options {
            workload: self.workload.clone(),
            truncate: self.truncate,
            load: self.load,
            link: self.link,
            transports: self.transports.clone(),
            client_max: self.client_max,
            ports: self.ports,
            receivers: self.receivers,
            poll,
            seconds,
            runs,
            seed,
            fabric,
            parameters: Vec::new(),
        };
        Setting::apply_all(settings, &mut options)?;
        options.check()?;
        Ok(options)
    }
}

/// Gives the arguments the lab's defaults.
pub(super) fn defaults(command: Command) -> Command {
    let usual = Options::default();
    let transports: Vec<String> = usual.transports.iter().map(ToString::to_string).collect();
    with_defaults(
        command,
        [
            ("workload", usual.workload),
            ("truncate", usual.truncate.to_string()),
            ("load", usual.load.to_string()),
            ("link", "auto".to_owned()),
            ("transports", transports.join(",")),
            ("client_max", usual.client_max.to_string()),
            ("ports", usual.ports.to_string()),
            ("receivers", usual.receivers.to_string()),
            ("seconds", usual.seconds.to_string()),
            ("runs", usual.runs.to_string()),
            ("seed", usual.seed.to_string()),
            ("poll", usual.poll.to_string()),
        ],
    )
}

fn link(text: &str) -> Result<Link, String> {
    text.parse().map_err(problem)
}

fn mix(text: &str) -> Result<Mix, String> {
    text.parse().map_err(problem)
}

/// What is wrong, without the name of the option, which is said anyway.
fn problem(error: Error) -> String {
    match error {
        Error::Option { problem, .. } => problem,
        error => error.to_string(),
    }
}
