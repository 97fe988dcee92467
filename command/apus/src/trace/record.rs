//! `apus trace record`: traces of a client and a server on this machine.
//!
//! Client and server exchange messages in two processes; then each writes its trace to a file. The
//! result compares the client's own measurement with the sum of the stages of the traced RPCs.

use std::path::PathBuf;
use std::time::Duration;

use apus::PollMode;
use apus::trace::Sampling;
use apus_command_line::failure::Failure;
use apus_command_line::output;
use apus_measure::error::{Error, require};
use apus_measure::exchange::{self, Calls, Exchange, Recording};
use apus_measure::machine::Cores;
use apus_measure::plan::{Plan, Replies, Side, check_seconds, poll_on};
use apus_measure::process::Spawner;
use apus_report::result::{Figure, Outcome, Ratio, Row};
use apus_report::stats::Spread;
use apus_trace::Trace;
use apus_traces::merge::MergedTraces;
use apus_traces::report::RpcFilter;
use apus_traces::report::timeline::Timeline;
use clap::Args;
use serde_json::{Value, json};

use crate::path::Path;

/// Record the traces of a client and a server on this machine
///
/// Two processes exchange messages for some time, and each writes its trace for the other commands:
/// `client.tt` and `server.tt`. The command compares the time that the client measured with the sum
/// of the stages of the traced RPCs. A trace keeps the last 16384 records of each thread, which are
/// some hundred RPCs however long the recording takes.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(after_help = "Examples:
  apus trace record
  apus trace record --out traces --size 500000 --outstanding 8
  apus trace record --path auto --traced sampled=10 --json")]
pub(super) struct RecordArguments {
    /// Write the files to this directory, which is created if it does not exist
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Size of each request and of its reply in bytes: 1 to 64000000
    #[arg(long, value_name = "BYTES", default_value_t = 100, allow_negative_numbers = true)]
    size: usize,
    /// Outstanding requests: 1 to 65536
    #[arg(long, value_name = "REQUESTS", default_value_t = 1, allow_negative_numbers = true)]
    outstanding: usize,
    /// Duration of the exchange in seconds: 0.01 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, allow_negative_numbers = true)]
    seconds: f64,
    /// How to wait for packets: `spin`, `block`, or `hybrid=MICROSECONDS`, which spins for that
    /// time and then sleeps (`hybrid` alone: 50)
    #[arg(long, value_name = "MODE", default_value_t = PollMode::Spin)]
    poll: PollMode,
    /// RPCs to trace: `all`, or `sampled=N` for one RPC in N
    #[arg(long, value_name = "WHICH", default_value = "all")]
    traced: String,
    /// How messages reach peers on this host
    #[arg(long, value_name = "PATH", value_enum, default_value = "udp")]
    path: Path,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

impl RecordArguments {
    /// Checks the values, and returns the sampling mode.
    fn check(&self) -> Result<Sampling, Error> {
        check_seconds(self.seconds)?;
        let sizes = 1..=Plan::LARGEST;
        require(sizes.contains(&self.size), "size", "from 1 to 64000000 bytes; try 100")?;
        let counts = 1..=65_536;
        require(counts.contains(&self.outstanding), "outstanding", "from 1 to 65536; try 1")?;
        let traced = self.traced.parse::<Sampling>().ok().filter(|it| *it != Sampling::Off);
        traced.ok_or_else(|| Error::Option {
            option: "traced",
            problem: "`all`, or `sampled=N` for one RPC in N; try all".to_owned(),
        })
    }

    fn plan(&self, poll: PollMode) -> Plan {
        Plan {
            size: self.size,
            outstanding: self.outstanding,
            poll,
            // The traces contain the first calls, too.
            warmup: Duration::ZERO,
            measure: Duration::from_secs_f64(self.seconds),
            seed: 0,
            settings: apus::Settings::default(),
            raw: false,
            keys: None,
        }
    }
}

/// Records the traces, and prints their agreement with the client's measurement.
pub(super) fn run(arguments: &RecordArguments) -> Result<(), Failure> {
    let outcome = record(arguments, &Spawner::this_program()?)?;
    if arguments.json { output::line(&outcome.json()) } else { output::write(outcome.to_string()) }
}

/// Writes the files `client.tt` and `server.tt`, and compares them with the client's measurement.
fn record(options: &RecordArguments, host: &Spawner) -> Result<Outcome, Error> {
    let sampling = options.check()?;
    std::fs::create_dir_all(&options.out).map_err(|source| Error::System {
        doing: format!("make {}", options.out.display()),
        source,
    })?;
    let cores = Cores::choose();
    let plan = options.plan(poll_on(cores, options.poll));
    let [client, server] = ["client.tt", "server.tt"].map(|name| options.out.join(name));
    let exchange = Exchange {
        calls: if options.outstanding == 1 { Calls::OneByOne } else { Calls::Many(Replies::Echo) },
        path: match options.path {
            Path::Auto => exchange::Path::Local,
            Path::Udp => exchange::Path::Udp,
        },
    };
    let recording = Recording { sampling, client, server };
    let measured = exchange.record(&plan, host, cores, &recording)?.client;
    let Recording { client, server, .. } = recording;
    let mut outcome = Outcome::new("trace record", serde_json::Map::new());
    outcome.notes.extend(cores.note());
    let config = json!({
        "client": client, "server": server, "size": options.size,
        "outstanding": options.outstanding, "seconds": options.seconds,
        "path": if options.path == Path::Auto { "memory" } else { "udp" }, "poll": plan.poll.to_string(), "traced": options.traced,
    });
    if let Value::Object(config) = config {
        outcome.config = config;
    }
    compare(&mut outcome, &measured, &[client, server])?;
    Ok(outcome)
}

/// Compares the client's measurement with the traces.
fn compare(outcome: &mut Outcome, measured: &Side, files: &[PathBuf]) -> Result<(), Error> {
    let read = |path: &PathBuf| {
        let trace = Trace::load(path).map_err(|error| Error::Peer(error.to_string()))?;
        Ok((path.display().to_string(), trace))
    };
    let traces = files.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
    let merged = MergedTraces::of(traces).map_err(|error| Error::Peer(error.to_string()))?;
    outcome.notes.extend(merged.notes.iter().cloned());
    let row = |name: &str, rpcs: u64, p50: f64| {
        let micros = Figure::Spread(Spread::over(&[p50 / 1e3]));
        Row::new(name).with("rpcs", Figure::Count(rpcs)).with("p50_us", micros)
    };
    let own = measured.latency;
    outcome.rows.push(row("measured by the client", own.samples, own.p50 as f64));
    let timeline = Timeline::of(&merged, &RpcFilter::default());
    // The handshake for shared memory itself runs over the network.
    let Some(group) = timeline.groups.iter().max_by_key(|group| group.rtt.count()) else {
        outcome.notes.push("the traces have no RPC from its call to its return".to_owned());
        return Ok(());
    };
    let (rpcs, rtt) = (group.rtt.count() as u64, group.rtt.median() as f64);
    let sum = group.sum_of_medians() as f64;
    outcome.rows.push(row("call to return in the traces", rpcs, rtt));
    outcome.rows.push(row("stages in the traces", rpcs, sum));
    for (name, value) in [("traces/measured", rtt), ("stages/measured", sum)] {
        let ratio = Ratio::over(&[value], &[own.p50 as f64]);
        outcome.ratios.extend(ratio.map(|ratio| (name.to_owned(), ratio)));
    }
    Ok(())
}
