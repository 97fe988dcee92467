//! Time traces of a client and a server on this machine.
//!
//! A client and a server, each a process of its own, exchange messages for some time, as in `bench rtt` or `bench rate`;
//! then each writes its trace into a file. The result has the client's own measurement beside the sum of the stages of the
//! traced RPCs, which should agree.

use std::net::SocketAddr;
use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use apus::PollMode;
use apus_trace::{Sampling, Trace, recorder};
use apus_traces::merge::MergedTraces;
use apus_traces::report::RpcFilter;
use apus_traces::report::timeline::Timeline;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::contenders::apus::{Apus, Calls, Path};
use crate::contenders::contender::{Contender, Plan, Replies, Side};
use crate::options::check_seconds;
use apus_report::experiment::defaults;
use apus_report::result::{Figure, Outcome, Ratio, Row};
use apus_report::stats::Spread;
use apus_testbed::error::{Error, require};
use apus_testbed::machine::Cores;
use apus_testbed::process::{Control, Spawner, Task};

/// Record the traces of a client and a server on this machine
///
/// Two processes exchange messages for some time, and each writes its trace for the other commands: `client.tt` and
/// `server.tt`. The command prints what the client measured with its own clock beside the sum of the stages of the
/// traced RPCs. A trace keeps the last 16384 records of each thread, which are some hundred RPCs however long the
/// recording takes.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(after_help = "Examples:
  apus trace record
  apus trace record --out traces --size 500000 --outstanding 8
  apus trace record --path auto --traced sampled=10 --json")]
pub struct Options {
    /// Write the files to this directory, which is created if it does not exist
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Size of each request and of its reply in bytes: 1 to 64000000
    #[arg(long, value_name = "BYTES", default_value_t = 100, allow_negative_numbers = true)]
    pub size: usize,
    /// Outstanding requests: 1 to 65536
    #[arg(long, value_name = "REQUESTS", default_value_t = 1, allow_negative_numbers = true)]
    pub outstanding: usize,
    /// Seconds for which messages are exchanged: 0.01 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, allow_negative_numbers = true)]
    pub seconds: f64,
    /// How to wait for packets: `spin`, `block`, or `hybrid=MICROSECONDS`, which spins for that time and then sleeps
    /// (`hybrid` alone: 50)
    #[arg(long, value_name = "MODE", default_value_t = PollMode::Spin)]
    pub poll: PollMode,
    /// Whether messages go through shared memory, rather than over UDP as between hosts.
    #[arg(skip)]
    pub local: bool,
    /// Which RPCs are traced: `all`, or `sampled=N` for one RPC in N
    #[arg(long, value_name = "WHICH", default_value = "all")]
    pub traced: String,
}

impl Default for Options {
    fn default() -> Self {
        defaults()
    }
}

/// The kind of task that [`agent`] does.
pub(crate) const JOB: &str = "trace";

/// The details of an agent's task.
#[derive(Debug, Serialize, Deserialize)]
struct Details {
    plan: Plan,
    local: bool,
    traced: String,
    file: PathBuf,
    /// For clients.
    server: Option<SocketAddr>,
}

impl Options {
    fn check(&self) -> Result<(), Error> {
        check_seconds(self.seconds)?;
        let sizes = 1..=Plan::LARGEST;
        require(sizes.contains(&self.size), "size", "from 1 to 64000000 bytes; try 100")?;
        let counts = 1..=65_536;
        require(counts.contains(&self.outstanding), "outstanding", "from 1 to 65536; try 1")?;
        let known = self.traced.parse::<Sampling>().is_ok_and(|it| it != Sampling::Off);
        require(known, "traced", "`all`, or `sampled=N` for one RPC in N; try all")
    }

    fn plan(&self, poll: PollMode) -> Plan {
        Plan {
            size: self.size,
            outstanding: self.outstanding,
            poll,
            // The traces have what happens at first, too.
            warmup: Duration::ZERO,
            measure: Duration::from_secs_f64(self.seconds),
            seed: 0,
            settings: apus::Settings::default(),
            raw: false,
            keys: None,
        }
    }
}

/// Records, writes the files `client.tt` and `server.tt`, and says what they are worth.
///
/// # Errors
///
/// An option does not fit, a side failed, or a file cannot be written.
pub fn record(options: &Options, host: &Spawner) -> Result<Outcome, Error> {
    options.check()?;
    std::fs::create_dir_all(&options.out).map_err(|source| Error::System {
        doing: format!("make {}", options.out.display()),
        source,
    })?;
    let cores = Cores::choose();
    let plan = options.plan(crate::contenders::contender::poll_on(cores, options.poll));
    let [client_file, server_file] = ["client.tt", "server.tt"].map(|name| options.out.join(name));
    let task = |name: &str, core, file: &FilePath, server| Task {
        name: name.to_owned(),
        core,
        bind: None,
        job: JOB.to_owned(),
        details: json!(Details {
            plan: plan.clone(),
            local: options.local,
            traced: options.traced.clone(),
            file: file.to_owned(),
            server,
        }),
    };
    let mut server = host.start(task("server", cores.server, &server_file, None))?;
    let address = server.address()?;
    let client = host.start(task("client", cores.client, &client_file, Some(address)))?;
    let measured: Side = client.result(plan.duration())?;
    let _: Side = server.stop()?;
    let mut outcome = Outcome::new("trace record", serde_json::Map::new());
    outcome.notes.extend(cores.note());
    let config = json!({
        "client": client_file, "server": server_file, "size": options.size,
        "outstanding": options.outstanding, "seconds": options.seconds,
        "path": if options.local { "memory" } else { "udp" }, "poll": plan.poll.to_string(), "traced": options.traced,
    });
    if let Value::Object(config) = config {
        outcome.config = config;
    }
    compare(&mut outcome, &measured, &[client_file, server_file])?;
    Ok(outcome)
}

/// Puts what the client measured beside what the trace says.
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
    // Before two processes share memory they say so over the network.
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

/// Does one side's work, and writes its trace.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let malformed = |what: String| Error::Peer(format!("a malformed task: {what}"));
    let details: Details = serde_json::from_value(task.details.clone())
        .map_err(|error| malformed(error.to_string()))?;
    let Details { plan, local, traced, file, server } = details;
    let sampling: Sampling = traced.parse().map_err(|_| malformed(traced.clone()))?;
    recorder::set_sampling(sampling);
    let one = plan.outstanding == 1;
    let apus = Apus {
        calls: if one { Calls::OneByOne } else { Calls::Many(Replies::Echo) },
        path: if local { Path::Local } else { Path::Udp },
    };
    let side = match server {
        None => apus.serve(&plan, control),
        Some(server) => apus.drive(&plan, server, control),
    }?;
    recorder::dump_to(&file).map_err(|error| Error::Peer(error.to_string()))?;
    Ok(json!(side))
}
