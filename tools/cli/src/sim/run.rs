//! How do messages fare in a fabric?

use std::cell::RefCell;
use std::env;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use apus_report::progress::Progress;
use apus_sim::Shape;
use apus_sim::experiment::Pattern;
use apus_sim::fabric::{Buffers, Spreading};
use apus_sim::host::Answer;
use apus_sweep::report::Findings;
use apus_sweep::{
    Axis, Choice, Done, Lines, Options, OptionsError, PeerModel, Plan, Point, Preset, Record,
    Shard, Status, Transport, execute,
};
use apus_workload::Workload;
use apus_workload::{Nanos, Rate, units};
use clap::Args;

use super::results::Results;
use crate::failure::Failure;

/// Run messages of a workload through a simulated fabric, beside published figures
///
/// Hosts hand messages over at random instants (Poisson) whether or not earlier ones are done, until the
/// fabric's links carry the load that is asked for. Slowdown is the time that a message took divided by the
/// best possible one on an idle fabric. Without options this is the set-up of the Homa paper (SIGCOMM
/// 2018): 144 hosts in 9 racks, 4 spines, links of 10 and 40 Gbit/s, W4 at 80 % load.
///
/// A load that the transport cannot sustain has no slowdowns: queues grow for as long as messages come.
/// Such a run says so instead of printing numbers (in JSON they are null, and `steady` is false); that is a
/// result, and the exit status is 0.
///
/// Lists with commas span a sweep: every combination of workload, load, topology, parameter, transport and
/// seed is a point of its own, a pure function of its options. `--out` keeps one line per point and does
/// not run again what is there already. With `--out`, a process that was started as one of many runs its
/// share of the points: `--shard I/N`, or what Slurm arrays, Kubernetes indexed jobs and MPI say in the
/// environment. `apus sim merge` puts the files together.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus sim run
  apus sim run --preset sigcomm18 --workload w4 --load 0.8 --json
  apus sim run --workload w2 --transport apus,dctcp,oracle --html w2.html
  apus sim run --param max_overcommit=1,7 --load 0.6,0.7,0.8,0.9
  apus sim run --topology 1x16x0 --pattern incast=15 --workload 10000 --buffer per-port=200kB
  apus sim run --workload w1,w3 --topology 1x16x0 --peer-model kernel
  apus sim run --load 0.5,0.8 --shard 0/2 --out part-{shard}.jsonl")]
pub(crate) struct Arguments {
    /// Where the configuration of apus comes from: `sigcomm18`, as in the paper, or `shipped`, as it
    /// comes. The fabric is the paper's either way, until options say otherwise
    #[arg(long, value_name = "NAME", default_value = "sigcomm18")]
    preset: Preset,
    /// Sizes of the messages: `w1` to `w5` (published workloads), a size in bytes, or a file whose lines
    /// are `SIZE SHARE`, the share of the messages up to that size
    #[arg(long, value_name = "WORKLOAD", value_delimiter = ',', default_value = "w4")]
    workload: Vec<Workload>,
    /// Share of the links to hosts that is busy with the messages and all that belongs to them, headers
    /// and grants included: above 0 and up to 1. Reckoned with what apus needs; all transports get the same
    /// messages
    #[arg(
        long,
        value_name = "SHARE",
        value_delimiter = ',',
        default_value = "0.8",
        allow_negative_numbers = true
    )]
    load: Vec<f64>,
    /// Racks, hosts in each, spines; `1x16x0` is one rack
    #[arg(long, value_name = "RxHxS", value_delimiter = ',', default_value = "9x16x4")]
    topology: Vec<Shape>,
    /// Who carries the messages: `apus`, `dctcp` (as Linux has it), `oracle` (one scheduler
    /// that knows them all: a lower bound). Several carry the same messages and are compared
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "apus")]
    transport: Vec<Transport>,
    /// A parameter of apus, instead of the preset's value; several values are compared
    #[arg(long, value_name = "NAME=VALUE[,VALUE]")]
    param: Vec<Axis>,
    /// Where chance begins: the same seed draws the same messages
    #[arg(
        long,
        value_name = "NUMBER",
        value_delimiter = ',',
        default_value = "1",
        allow_negative_numbers = true
    )]
    seed: Vec<u64>,
    /// Runs of each setting, 1 to 1000, with this seed and those after it; reported are the median, the
    /// least and the greatest. One run is exact for its seed: more of them tell how much of a figure is
    /// chance
    #[arg(long, value_name = "RUNS", default_value_t = 1, allow_negative_numbers = true)]
    runs: u32,
    /// Messages that are handed over while it is measured [default: as many as make 25 million packets,
    /// 2000 to 3000000]; what is delivered meanwhile counts. The more, the steadier: a p99 needs hundreds
    /// of messages in its bin
    #[arg(long, value_name = "MESSAGES", allow_negative_numbers = true)]
    messages: Option<u32>,
    /// Messages before those, until queues are as long as they become [default: as many]. With too few,
    /// long messages look faster than they are: those of W4 are under way for a fifth of a second
    #[arg(long, value_name = "MESSAGES", allow_negative_numbers = true)]
    warm_up: Option<u32>,
    #[command(flatten)]
    fabric: Fabric,
    /// Who sends to whom: `uniform`, or `incast=N`, N hosts to one at the same moment
    #[arg(long, value_name = "PATTERN", default_value = "uniform")]
    pattern: Pattern,
    /// What receivers answer: `none` (one-way messages, as in the paper) or `echo` (request and response)
    #[arg(long, value_name = "ANSWER", default_value = "none")]
    answer: Answer,
    /// What runs on the hosts of apus: `apus` on all of them; or `kernel`, a model of the Linux module on every second
    /// one, and apus in the kernel profile on the others. Longer messages than 1000000 bytes are as long as that then. The model has
    /// no processor and no buffers that run out: it shows how the two get on with each other, not how fast the
    /// module is
    #[arg(long, value_name = "MODEL", default_value = "apus")]
    peer_model: PeerModel,
    /// Points that run at the same time [default: the number of processors]. The results are the same
    #[arg(long, value_name = "THREADS", allow_negative_numbers = true)]
    jobs: Option<usize>,
    /// Keep one JSON object per point in this file, and take from it what has run already; `{shard}` in
    /// the name is the shard's number
    #[arg(long, value_name = "FILE")]
    out: Option<String>,
    /// Which part of the points runs here: I/N, from 0/N; `auto` takes it from the environment, and
    /// `auto/N` takes I from it. Without this and with --out, the environment is asked: SLURM_ARRAY_TASK_ID,
    /// JOB_COMPLETION_INDEX (needs auto/N), OMPI_COMM_WORLD_RANK, PMI_RANK
    #[arg(long, value_name = "I/N", requires = "out")]
    shard: Option<Choice>,
    #[command(flatten)]
    results: Results,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
}

/// The fabric, but for its shape.
#[derive(Debug, Args)]
struct Fabric {
    /// Rate of the links between hosts and racks [default: 10gbit]
    #[arg(long, value_name = "RATE", value_parser = units::rate, allow_hyphen_values = true)]
    link: Option<Rate>,
    /// Rate of the links between racks and spines [default: 40gbit]
    #[arg(long, value_name = "RATE", value_parser = units::rate, allow_hyphen_values = true)]
    fabric_link: Option<Rate>,
    /// From a packet's last bit at a switch to its place in the next queue [default: 250ns]
    #[arg(long, value_name = "TIME", value_parser = units::time, allow_hyphen_values = true)]
    switch_delay: Option<Nanos>,
    /// Software of a host, two thirds on the way out and one third on the way in [default: 1500ns]
    #[arg(long, value_name = "TIME", value_parser = units::time, allow_hyphen_values = true)]
    host_delay: Option<Nanos>,
    /// Light on each link [default: 0ns]
    #[arg(long, value_name = "TIME", value_parser = units::time, allow_hyphen_values = true)]
    propagation: Option<Nanos>,
    /// More on the links between rack number R and the spines, times R, so that round-trip times differ
    /// [default: 0ns]
    #[arg(long, value_name = "TIME", value_parser = units::time, allow_hyphen_values = true)]
    per_rack_delay: Option<Nanos>,
    /// How packets are spread over the spines: each one at random (`packet`), or all between two hosts on
    /// the same way (`flow`)
    #[arg(long, value_name = "HOW", default_value = "packet")]
    spreading: Spreading,
    /// What may wait in switches: `per-port=BYTES`, `shared=BYTES` for each switch, or `unlimited`;
    /// packets beyond are dropped
    #[arg(long, value_name = "BUFFER", default_value = "unlimited")]
    buffer: Buffers,
    /// Bytes that wait at an output to a host when its packets begin to be marked, for dctcp; outputs to
    /// spines mark in proportion to their rate [default: 8 packets at 10gbit, with which DCTCP is at its
    /// best in this fabric; its paper has 65]
    #[arg(long, value_name = "BYTES", value_parser = units::bytes, allow_hyphen_values = true)]
    mark_at: Option<u64>,
}

/// Simulates and shows what came out.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let plan = Plan::new(&options(arguments))?;
    let shard = shard(arguments)?;
    let mut lines = match &arguments.out {
        None => None,
        Some(name) => {
            let path = PathBuf::from(name.replace("{shard}", &shard.index().to_string()));
            let lines = Lines::open(&path, &plan.name);
            Some(lines.map_err(|error| wrong("--out", &error))?)
        }
    };
    let jobs = jobs(arguments)?;
    let results = arguments.results.open()?;
    let points: Vec<&Point> = plan
        .points
        .iter()
        .filter(|point| shard.contains(point.index))
        .filter(|point| lines.as_ref().is_none_or(|lines| !lines.contains(point.index)))
        .collect();
    let mut done = simulate(&plan, &points, jobs, arguments.quiet, &mut lines)?;
    done.sort_by_key(|done| done.record.index);
    let ran = || done.iter().map(|done| done.record.clone());
    let records: Vec<Record> = match &lines {
        None => ran().collect(),
        Some(lines) => lines.records().cloned().collect(),
    };
    let mut findings = Findings::new(&records, &done);
    if records.len() < plan.points.len() {
        findings.outcome.notes.push(format!(
            "these are {} of {} points; `apus sim merge` puts them together with the others",
            records.len(),
            plan.points.len()
        ));
    }
    results.show(&findings)
}

/// Runs the points; each is kept as soon as it is done.
fn simulate(
    plan: &Plan,
    points: &[&Point],
    jobs: usize,
    quiet: bool,
    lines: &mut Option<Lines>,
) -> Result<Vec<Done>, Failure> {
    if let Some(lines) = lines {
        // A shard without points has a file all the same.
        lines.add([]).map_err(|error| Failure::Work(error.to_string()))?;
    }
    let (progress, began) = (Progress::of_whole(), Instant::now());
    let mut watch = |status: Status| {
        if !quiet {
            let rate = status.packets as f64 / began.elapsed().as_secs_f64().max(1e-9) / 1e6;
            let Status { share, points: done, .. } = status;
            let of = points.len();
            let what = format!("{done}/{of} points, {rate:.2} M packets/s");
            let waits =
                if share >= 1.0 && done < of { ", waiting for the last messages" } else { "" };
            progress.done(share, &(what + waits));
        }
    };
    let done = RefCell::new(Vec::new());
    execute(plan, points, jobs, &mut watch, &mut |each| {
        if let Some(lines) = lines {
            lines.add([each.record.clone()])?;
        }
        done.borrow_mut().push(each);
        Ok(())
    })
    .map_err(|error: apus_sweep::LinesError| Failure::Work(error.to_string()))?;
    Ok(done.into_inner())
}

/// What is asked, in terms of the simulator.
fn options(arguments: &Arguments) -> Options {
    let mut options = Options {
        preset: arguments.preset,
        workloads: arguments.workload.clone(),
        loads: arguments.load.clone(),
        shapes: arguments.topology.clone(),
        parameters: arguments.param.clone(),
        transports: arguments.transport.clone(),
        seeds: arguments.seed.clone(),
        runs: arguments.runs,
        pattern: arguments.pattern,
        answer: arguments.answer,
        peer_model: arguments.peer_model,
        messages: arguments.messages,
        warm_up: arguments.warm_up,
        ..Options::new()
    };
    let fabric = &arguments.fabric;
    options.fabric.spreading = fabric.spreading;
    options.fabric.buffers = fabric.buffer;
    options.fabric.mark_at = fabric.mark_at;
    let topology = &mut options.fabric.topology;
    topology.host_rate = fabric.link.unwrap_or(topology.host_rate);
    topology.fabric_rate = fabric.fabric_link.unwrap_or(topology.fabric_rate);
    let delays = &mut topology.delays;
    delays.switch = fabric.switch_delay.unwrap_or(delays.switch);
    delays.propagation = fabric.propagation.unwrap_or(delays.propagation);
    delays.per_rack = fabric.per_rack_delay.unwrap_or(delays.per_rack);
    if let Some(both) = fabric.host_delay {
        // As in the paper's set-up: software and interface on the way out, software on the way in.
        delays.host_in = both / 3;
        delays.host_out = both - delays.host_in;
    }
    options
}

/// The part of the plan that runs here.
fn shard(arguments: &Arguments) -> Result<Shard, Failure> {
    let environment = |name: &str| env::var(name).ok();
    let found = match arguments.shard {
        Some(choice) => choice.resolve(environment),
        None if arguments.out.is_some() => {
            Shard::from_environment(environment, None).map(|found| found.unwrap_or(Shard::ALL))
        }
        None => Ok(Shard::ALL),
    };
    found.map_err(|error| wrong("--shard", &error))
}

/// Points that run at the same time.
fn jobs(arguments: &Arguments) -> Result<usize, Failure> {
    match arguments.jobs {
        Some(jobs @ 1..=4096) => Ok(jobs),
        Some(_) => Err(wrong("--jobs", &"1 to 4096 points run at the same time; try 4")),
        None => Ok(thread::available_parallelism().map_or(1, usize::from)),
    }
}

fn wrong(argument: &str, problem: &impl ToString) -> Failure {
    Failure::Argument { argument: argument.to_owned(), problem: problem.to_string() }
}

impl From<OptionsError> for Failure {
    fn from(error: OptionsError) -> Self {
        wrong(&format!("--{}", error.option), &error.problem)
    }
}
