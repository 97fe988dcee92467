//! The phases of the demo: unloaded, capacity, load.

use std::time::Duration;

use super::findings::{Measured, findings};
use super::options::Options;
use crate::loopback::{self, Bench, LoadPhase, Messages, Repeats};
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_report::stats::Spread;
use apus_testbed::error::Error;
use apus_testbed::machine::{BackgroundLoad, Cores};
use apus_testbed::process::Spawner;

/// Most outstanding requests under load; further requests wait, and their latency includes the wait. Source:
/// `--client-max` of the kernel module's `cp_node`, 200.
///
/// Capacity is measured with as many, because a contender works a backlog off at the rate that it completes when it is
/// crowded. Measured with fewer (16: 30 % more for one connection per request), 80 % could exceed that rate once a
/// backlog exists, and the contender would never recover.
pub(super) const LIMIT: u32 = 200;

/// Measured time of one measurement of capacity.
const CAPACITY: Duration = Duration::from_millis(500);

/// Measurements of capacity. Odd, because the median counts: neither what a contender can do only now and then, nor what
/// it did while others had the machine, is what a load should be a share of.
const CAPACITY_RUNS: usize = 3;

/// Runs all phases.
pub(super) fn run(options: &Options, host: &Spawner) -> Result<Findings, Error> {
    options.check()?;
    let neighbours = BackgroundLoad::watch();
    let cores = Cores::choose();
    let options = &Options { repetition: options.repetition.on(cores), ..options.clone() };
    let contenders = loopback::contenders();
    let runs = options.repetition.runs;
    let bench = Bench {
        host,
        cores,
        poll: options.repetition.poll,
        messages: Messages {
            workload: options.sizes.workload.clone(),
            truncate: options.sizes.truncate,
            seed: options.repetition.seed,
        },
        progress: Progress::of((1 + CAPACITY_RUNS + runs) * contenders.len()),
        contenders,
        repeats: Repeats::allow(0),
    };
    let scale = bench.scale()?;
    let capacity = bench.capacity(CAPACITY_RUNS, LIMIT, CAPACITY)?;
    let median = |runs: &Vec<loopback::Measured<f64>>| {
        Spread::over(&runs.iter().map(|run| run.result).collect::<Vec<_>>()).median
    };
    let capacity: Vec<f64> = capacity.iter().map(median).collect();
    let slowest = capacity.iter().copied().fold(f64::INFINITY, f64::min);
    let rate = options.rate.unwrap_or(options.load * slowest);
    let measure = Duration::from_secs_f64(options.repetition.seconds);
    let load = LoadPhase {
        rate,
        warm: measure / 10,
        measure,
        limit: LIMIT,
        burst: None,
        window: None,
        scale,
    };
    let loads = bench.loads(runs, &load, None)?;
    let measured = bench.contenders.iter().zip(capacity).zip(loads);
    let measured = measured.map(|((contender, capacity), runs)| Measured {
        name: contender.name(),
        settings: contender.settings(),
        capacity,
        runs: runs.into_iter().map(|run| run.result).collect(),
    });
    let measured: Vec<Measured> = measured.collect();
    let mut findings = findings(options, rate, &load.scale, &measured)?;
    findings.outcome.notes.extend(cores.note().into_iter().chain(neighbours.note()));
    Ok(findings)
}
