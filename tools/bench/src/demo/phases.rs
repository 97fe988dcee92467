//! The phases of the demo: unloaded, capacity, load.

use std::time::Duration;

use super::findings::{Measured, findings};
use super::options::Options;
use crate::loopback::{self, Bench, LoadPhase, Messages};
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_report::stats::Spread;
use apus_testbed::error::Error;
use apus_testbed::machine::Cores;
use apus_testbed::process::Spawner;
use apus_testbed::repeat::Repeater;

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
    let cores = Cores::choose();
    let options = &Options { repetition: options.repetition.on(cores), ..options.clone() };
    let contenders = loopback::contenders();
    let runs = options.repetition.runs;
    let phases = (1 + CAPACITY_RUNS + runs) * contenders.len();
    let bench = Bench {
        host,
        cores,
        poll: options.repetition.poll,
        messages: Messages {
            workload: options.sizes.workload.clone(),
            truncate: options.sizes.truncate,
            seed: options.repetition.seed,
        },
        contenders,
        repeater: Repeater::of(phases, Progress::of(phases)),
    };
    let Some(scale) = bench.scale()? else { return Err(bench.repeater.failure()) };
    let capacity = bench.capacity(CAPACITY_RUNS, LIMIT, CAPACITY)?;
    let median = |runs: Vec<loopback::Measured<f64>>| {
        let results: Vec<f64> = runs.iter().map(|run| run.result).collect();
        (!results.is_empty()).then(|| Spread::over(&results).median)
    };
    let capacity: Vec<Option<f64>> = capacity.into_iter().map(median).collect();
    let Some(slowest) = capacity.iter().copied().flatten().reduce(f64::min) else {
        return Err(bench.repeater.failure());
    };
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
    let measured = measured.filter_map(|((contender, capacity), runs)| {
        Some(Measured {
            name: contender.name(),
            settings: contender.settings(),
            capacity: capacity.filter(|_| !runs.is_empty())?,
            runs: runs.into_iter().map(|run| (run.run, run.result)).collect(),
        })
    });
    let measured: Vec<Measured> = measured.collect();
    if measured.is_empty() {
        return Err(bench.repeater.failure());
    }
    let mut findings = findings(options, rate, &load.scale, &measured)?;
    findings.outcome.notes.extend(cores.note());
    bench.repeater.account(&mut findings.outcome)?;
    Ok(findings)
}
