//! The runs of the endpoints experiment, and their findings.

use std::time::Duration;

use serde_json::json;

use super::options::EndpointsOptions;
use super::sides::JOB;
use super::sides::{Clients, Details, Served};
use apus_report::experiment::config;
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_report::result::{Outcome, Row};
use apus_report::stats::Percentiles;
use apus_testbed::error::Error;
use apus_testbed::machine::Cores;
use apus_testbed::process::{Spawner, Task};
use apus_testbed::repeat::Repeater;

/// The row of the result.
const ROW: &str = "apus";

/// Maximum time of an endpoint's part of a run, as an estimate for the wait.
const EACH: Duration = Duration::from_millis(10);

/// Runs the experiment.
pub(super) fn run(options: &EndpointsOptions, host: &Spawner) -> Result<Findings, Error> {
    options.check()?;
    let cores = Cores::choose();
    let options = &EndpointsOptions { repetition: options.repetition.on(cores), ..options.clone() };
    let runs = options.repetition.runs;
    let repeater = Repeater::of(runs, Progress::of(runs));
    let mut sides = Vec::new();
    for run in 1..=runs {
        repeater.progress().step(&format!("run {run} of {runs}"));
        let measured =
            repeater.attempt(ROW, &format!("run {run}"), || measure(options, host, cores))?;
        sides.extend(measured);
    }
    let mut outcome = Outcome::new("endpoints", config(options));
    if !sides.is_empty() {
        outcome.rows.push(row(&sides, options));
    }
    outcome.notes.extend(cores.note());
    repeater.account(&mut outcome)?;
    let lead = "Many client endpoints of one process, each of which calls one server over UDP.";
    Ok(Findings::new(outcome, "What an endpoint costs", lead).with_all(Vec::new(), Vec::new(), []))
}

/// Returns the observations of both sides in one run.
fn measure(
    options: &EndpointsOptions,
    host: &Spawner,
    cores: Cores,
) -> Result<(Clients, Served), Error> {
    let pause = Duration::from_secs_f64(options.repetition.seconds);
    let task = |side: &str, core, server| Task {
        name: format!("{ROW} {side}"),
        core,
        bind: None,
        job: JOB.to_owned(),
        details: json!(Details {
            count: options.count,
            shards: options.shards,
            size: options.size,
            pause,
            poll: options.repetition.poll,
            server,
        }),
    };
    let mut server = host.start(task("server", cores.server, None))?;
    let address = server.address()?;
    let clients = host.start(task("clients", cores.client, Some(address)))?;
    let each = EACH * options.shards as u32;
    let clients = clients.result(pause + each * options.count as u32)?;
    Ok((clients, server.stop()?))
}

/// Returns the row of these runs.
fn row(runs: &[(Clients, Served)], options: &EndpointsOptions) -> Row {
    let count = options.count as f64;
    let shards = count * options.shards as f64;
    let micros = |times: Percentiles| times.p50 as f64 / 1e3;
    let tail = |times: Percentiles| times.p99 as f64 / 1e3;
    Row::new(ROW)
        .with_spread("create_us", runs, |(clients, _)| micros(clients.create))
        .with_spread("first_call_us", runs, |(clients, _)| micros(clients.first_call))
        .with_spread("later_call_us", runs, |(clients, _)| micros(clients.later_call))
        .with_spread("create_p99_us", runs, |(clients, _)| tail(clients.create))
        .with_spread("first_call_p99_us", runs, |(clients, _)| tail(clients.first_call))
        .with_spread("later_call_p99_us", runs, |(clients, _)| tail(clients.later_call))
        .with_spread("kb_created", runs, |(clients, _)| clients.created as f64 / count / 1024.0)
        .with_spread("kb_at_rest", runs, |(clients, _)| clients.at_rest as f64 / count / 1024.0)
        .with_spread("kb_per_shard", runs, |(clients, _)| clients.at_rest as f64 / shards / 1024.0)
        .with_spread("background_threads", runs, |(clients, _)| clients.background_threads as f64)
        .with_spread("idle_cpu_percent", runs, |(clients, _)| {
            clients.pause_cpu as f64 / clients.pause as f64 * 100.0
        })
        .with_spread("server_bytes_per_peer", runs, |(_, served)| served.bytes as f64 / shards)
}
