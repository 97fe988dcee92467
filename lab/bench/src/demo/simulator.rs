//! Path `simulator`: the messages of the demo between simulated hosts of one rack, over apus with
//! default settings and over DCTCP.
//!
//! Each simulation runs in a separate process, so that the demo survives if the system kills a
//! simulation, for example for lack of memory. The experiments are the same as in
//! `apus-lab sim run`.

use std::thread;
use std::time::{Duration, Instant};

use apus_sim::experiment::Experiment;
use apus_sweep::{Plan, Preset, Transport};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::options::DemoOptions;
use super::{JOB, LOAD, LONGEST, loopback};
use crate::slowdown::{self, Curve, OURS, Percentile, Scale, Slowdowns, Summary, tenths};
use apus_report::experiment::{config, name};
use apus_report::findings::{Findings, Part, Section};
use apus_report::progress::Progress;
use apus_report::result::{
    Figure, Incident, Outcome, PhaseEnd, Phases, Ratio, Row, named, rounded, table,
};
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Spawner, Task};

/// Hosts of the rack.
const TOPOLOGY: &str = "1x16x0";

/// Messages per second of the `seconds` option. Chosen by us: the default then has enough messages
/// for a steady p99, and takes one second of processor time.
const MESSAGES_PER_SECOND: f64 = 8_000.0;

/// Minimum number of messages for a meaningful p99.
const FEWEST_MESSAGES: f64 = 400.0;

/// Time after which no further run starts. Chosen by us: all runs together take less on most
/// machines.
const ENOUGH: Duration = Duration::from_secs(12);

/// Maximum duration of one simulation. Chosen by us: it only ends simulations that would take
/// forever on a far too slow machine.
const LONGEST_SIMULATION: Duration = Duration::from_secs(10);

/// The transports.
const TRANSPORTS: [Transport; 2] = [Transport::Apus, Transport::Dctcp];

/// The details of an agent's task.
#[derive(Debug, Serialize, Deserialize)]
struct Details {
    transport: String,
    messages: u32,
    seed: u64,
}

/// The result of one transport in one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Simulated {
    summary: Summary,
    /// Messages that failed.
    errors: u64,
    /// Share of busy time of links to hosts.
    achieved_load: f64,
    /// Whether the fabric carried the offered load.
    steady: bool,
}

/// One transport in all runs.
struct Series {
    name: String,
    /// The results, with the numbers of their runs.
    runs: Vec<(usize, Simulated)>,
}

/// Results of all simulations.
struct Simulations {
    series: [Series; 2],
    phases: Phases,
    /// Failure of the last simulation, if it has no result.
    failure: Option<Error>,
}

/// Simulates both transports, run by run.
///
/// # Errors
///
/// A transport has no result. A failure in a later run ends the simulation, and earlier results are
/// kept. Simulations are not repeated, because the same cause would end the next one as well.
pub(super) fn run(options: &DemoOptions, host: &Spawner) -> Result<Findings, Error> {
    let messages = (options.seconds * MESSAGES_PER_SECOND).max(FEWEST_MESSAGES).round() as u32;
    findings(options, messages, simulate(options, messages, host)?)
}

/// Simulates until all runs are complete, the time limit is reached, or a simulation fails.
fn simulate(options: &DemoOptions, messages: u32, host: &Spawner) -> Result<Simulations, Error> {
    let began = Instant::now();
    let progress = Progress::of(options.runs * TRANSPORTS.len());
    let mut series = TRANSPORTS.map(|each| Series { name: name(&each), runs: Vec::new() });
    let mut phases = Phases::default();
    for run in 0..options.runs {
        if run > 0 && began.elapsed() > ENOUGH {
            break;
        }
        for each in &mut series {
            progress.step(&format!("simulated run {} of {}: {}", run + 1, options.runs, each.name));
            let task = Task {
                name: format!("simulation of {}", each.name),
                core: None,
                bind: None,
                job: JOB.to_owned(),
                details: json!(Details {
                    transport: each.name.clone(),
                    messages,
                    seed: options.seed.wrapping_add(run as u64),
                }),
            };
            match host.start(task).and_then(|agent| agent.result(LONGEST_SIMULATION)) {
                Ok(simulated) => {
                    each.runs.push((run, simulated));
                    phases.record_measured(&each.name);
                }
                Err(error) if error.is_final() => return Err(error),
                Err(error) => {
                    phases.record(Incident {
                        row: each.name.clone(),
                        phase: format!("simulated run {}", run + 1),
                        attempts: 1,
                        end: PhaseEnd::Lost,
                        why: vec![error.to_string()],
                    });
                    return Ok(Simulations { series, phases, failure: Some(error) });
                }
            }
        }
    }
    Ok(Simulations { series, phases, failure: None })
}

/// Returns the options of `apus-lab sim run` for these transports and this seed.
fn sweep(transports: Vec<Transport>, messages: u32, seed: u64) -> apus_sweep::SweepOptions {
    apus_sweep::SweepOptions {
        preset: Preset::Shipped,
        longest: Some(u64::from(LONGEST)),
        loads: vec![LOAD],
        shapes: vec![TOPOLOGY.parse().expect("a constant topology")],
        transports,
        messages: Some(messages),
        seeds: vec![seed],
        ..apus_sweep::SweepOptions::default()
    }
}

/// Returns the experiments of a plan.
fn experiments(options: &apus_sweep::SweepOptions) -> Result<Vec<Experiment>, Error> {
    let wrong = |error: apus_sweep::OptionsError| Error::Option {
        option: "seconds",
        problem: error.problem,
    };
    let plan = Plan::new(options).map_err(wrong)?;
    Ok(plan.points.into_iter().map(|point| point.experiment).collect())
}

/// Runs one simulation in an agent.
pub(super) fn agent(task: &Task, _: &mut Control) -> Result<Value, Error> {
    let malformed = |what: String| Error::Peer(format!("a malformed task: {what}"));
    let details: Details = serde_json::from_value(task.details.clone())
        .map_err(|error| malformed(error.to_string()))?;
    let transport = TRANSPORTS.into_iter().find(|each| name(each) == details.transport);
    let transport = transport.ok_or_else(|| malformed(details.transport.clone()))?;
    let experiment =
        experiments(&sweep(vec![transport], details.messages, details.seed))?.remove(0);
    let mut slowdowns = Slowdowns::new(scale(&experiment));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let allowed = experiment.allowed_growth();
    let report = experiment.run_observed(threads, allowed, &mut |_| {}, &mut |message| {
        slowdowns.record(message.bytes, message.took);
    });
    Ok(json!(Simulated {
        summary: slowdowns.summary(),
        errors: report.failed,
        achieved_load: report.achieved_load(),
        steady: report.is_steady(),
    }))
}

/// Returns the base of slowdowns: the best possible time of each size. All hosts of a rack are at
/// the same distance.
fn scale(experiment: &Experiment) -> Scale {
    let sizes = experiment.workload.sizes();
    let topology = &experiment.fabric.topology;
    let best = |(bytes, _)| (bytes, topology.ideal(0, 1, bytes, &experiment.packets));
    Scale {
        best: sizes.iter().map(best).collect(),
        groups: tenths(sizes),
        short: sizes.quantile(0.5),
    }
}

/// Arranges the results.
///
/// # Errors
///
/// The failure of a simulation, if a transport has no result because of it.
fn findings(options: &DemoOptions, messages: u32, found: Simulations) -> Result<Findings, Error> {
    let Simulations { series, phases, failure } = found;
    let sweep = sweep(TRANSPORTS.to_vec(), messages, options.seed);
    let experiment = experiments(&sweep)?.remove(0);
    let mut outcome = Outcome::new("demo", settings(options, messages, &experiment));
    let measured = series.iter().filter(|each| !each.runs.is_empty());
    let curves: Vec<Curve> = measured.clone().map(Series::curve).collect();
    outcome.rows = measured.zip(&curves).map(|(each, curve)| each.row(curve)).collect();
    outcome.notes = series.iter().filter_map(Series::trouble).collect();
    let is_complete = failure.is_none();
    outcome.account(phases);
    if let Some(error) = failure.filter(|_| !outcome.is_answered()) {
        return Err(error);
    }
    outcome.ratios = ratios(&series);
    let (runs, link) = (series[0].runs.len(), experiment.fabric.topology.host_rate.mbps());
    if is_complete && runs < options.runs {
        outcome.notes.push(format!(
            "{runs} of {} runs: the machine is too slow for all of them in a minute",
            options.runs
        ));
    }
    let workload = &experiment.workload;
    let lead = format!(
        "{workload} at {:.0} % load: 16 hosts of a rack, links of {link} Mbit/s. 99th percentile of the slowdown of \
         short messages, median of {runs} runs:",
        100.0 * LOAD
    );
    let explanation = vec![
        "All hosts send messages to each other, one way. They are due at random instants (Poisson), whether or not earlier \
         ones are done. Both transports carry the same messages."
            .to_owned(),
        format!(
            "Slowdown: the time from the instant at which a message is due to its complete arrival, divided by the best \
             possible time on an idle fabric. Short messages are the smaller half, up to {} bytes.",
            workload.sizes().quantile(0.5)
        ),
        "apus is the protocol that ships, unchanged; DCTCP is the transport of datacenters that Linux has, over connections \
         that are open already."
            .to_owned(),
    ];
    let command = format!(
        "apus-lab sim run --preset {} --topology {TOPOLOGY} --workload w4 --longest {LONGEST} --load {LOAD} --transport {} \
         --messages {messages} --seed {} --runs {runs}",
        sweep.preset,
        TRANSPORTS.map(|each| name(&each)).join(","),
        options.seed
    );
    let findings =
        Findings::new(outcome, "What do short messages suffer when the network is busy?", lead)
            .with_columns(&["short_p50", "short_p99", "all_p99", "errors"])
            .with(Section::new("").with(slowdown::by_size(&curves)))
            .with(
                Section::new("The same in numbers")
                    .with(slowdown::table(&curves, &[Percentile::P50, Percentile::P99]))
                    .with(Part::Ratios),
            )
            .with(Section::new("What was simulated").with(Part::List(explanation)))
            .with(Section::new("Once more").on_page().with(Part::Listing(vec![command])));
    Ok(Findings { cards: slowdown::cards(&curves), ..findings })
}

fn settings(options: &DemoOptions, messages: u32, experiment: &Experiment) -> Map<String, Value> {
    let own = [
        ("workload", json!(experiment.workload.to_string())),
        ("load", json!(LOAD)),
        ("topology", json!(TOPOLOGY)),
        ("link_mbps", json!(experiment.fabric.topology.host_rate.mbps())),
        ("messages", json!(messages)),
    ];
    named(own).into_iter().chain(config(options)).collect()
}

/// Returns the ratios of every other transport's short messages to those of apus, run by run.
fn ratios(series: &[Series]) -> Vec<(String, Ratio)> {
    let Some(ours) = series.iter().find(|each| each.name == OURS) else { return Vec::new() };
    let mut ratios = Vec::new();
    for other in series.iter().filter(|each| each.name != OURS) {
        let mut compare = |name: &str, figure: fn(&Simulated) -> f64| {
            let ratio = Ratio::paired(&other.over_runs(figure), &ours.over_runs(figure));
            ratios.extend(ratio.map(|ratio| (format!("{name} {}/{OURS}", other.name), ratio)));
        };
        compare("short_p99", |run| run.summary.short.p99);
        compare("short_p50", |run| run.summary.short.p50);
    }
    ratios
}

/// Adds the loopback results to findings of the simulator.
pub(super) fn add_loopback(findings: &mut Findings, measured: &loopback::Measured) {
    let outcome = &mut findings.outcome;
    outcome.members.insert("loopback".to_owned(), measured.json());
    outcome.notes.extend(measured.notes().iter().cloned());
    let mut phases = outcome.phases.take().unwrap_or_default();
    phases.extend(measured.phases().clone());
    outcome.phases = Some(phases);
    let title =
        "in addition, over loopback of this machine: round trip and rate of requests of 100 bytes";
    let table = table::rows(measured.rows(), &table::columns(measured.rows()));
    let table = apus_report::result::Table { title: title.to_owned(), ..table };
    findings.sections.push(Section::new("").with(table));
}

impl Series {
    fn over_runs(&self, figure: impl Fn(&Simulated) -> f64) -> Vec<(usize, f64)> {
        self.runs.iter().map(|(number, run)| (*number, figure(run))).collect()
    }

    fn results(&self) -> impl Iterator<Item = &Simulated> {
        self.runs.iter().map(|(_, run)| run)
    }

    fn curve(&self) -> Curve {
        let runs: Vec<&Summary> = self.results().map(|run| &run.summary).collect();
        Curve::of(&self.name, &runs)
    }

    fn row(&self, curve: &Curve) -> Row {
        let runs: &Vec<&Simulated> = &self.results().collect();
        Row::new(&self.name)
            .with_spread("short_p50", runs, |run| run.summary.short.p50)
            .with_spread("short_p99", runs, |run| run.summary.short.p99)
            .with_spread("all_p50", runs, |run| run.summary.all.p50)
            .with_spread("all_p99", runs, |run| run.summary.all.p99)
            .with_spread("mean_by_bytes", runs, |run| run.summary.mean_by_bytes)
            .with("offered_load", Figure::Detail(json!(rounded(LOAD))))
            .with_spread("achieved_load", runs, |run| run.achieved_load)
            .with_sum("messages", runs, |run| run.summary.messages)
            .with_sum("errors", runs, |run| run.errors)
            .with("by_size", Figure::Detail(json!(curve.by_size)))
    }

    /// Returns a note about the runs of this transport, if its queues grew.
    fn trouble(&self) -> Option<String> {
        let unsteady = self.results().any(|run| !run.steady);
        unsteady.then(|| {
            format!(
                "the queues of {} grew in a run: its slowdown depends on how long the run was",
                self.name
            )
        })
    }
}
