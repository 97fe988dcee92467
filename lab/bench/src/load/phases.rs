//! The phases of the load experiment: unloaded, capacity, hold, load.

use std::time::Duration;

use super::contender::Contender;
use super::course::{self, Course};
use super::findings::{Setup, findings};
use super::options::{LoadOptions, Path};
use crate::contenders::transport::Transport;
use crate::loopback::{self, Bench, LoadPhase, Messages};
use crate::options::check_only;
use crate::slowdown::OURS;
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_report::stats::Spread;
use apus_testbed::error::Error;
use apus_testbed::machine::Cores;
use apus_testbed::process::Spawner;
use apus_testbed::repeat::Repeater;

/// Maximum duration of one capacity measurement.
const MAX_CAPACITY: Duration = Duration::from_secs(1);

/// Minimum number of capacity measurements: the load depends on their median.
const MIN_CAPACITY_RUNS: usize = 3;

/// Runs all phases.
pub(super) fn run(options: &LoadOptions, host: &Spawner) -> Result<Findings, Error> {
    options.check()?;
    let cores = Cores::choose();
    let options = &LoadOptions { repetition: options.repetition.on(cores), ..options.clone() };
    let contenders = selected(options)?;
    let runs = options.repetition.runs;
    let capacity_runs = runs.max(MIN_CAPACITY_RUNS);
    let hold_runs = if options.hold.is_some() { runs } else { 0 };
    let phases = (1 + capacity_runs + hold_runs + runs) * contenders.len();
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
    let seconds = Duration::from_secs_f64(options.repetition.seconds);
    let capacity = bench.capacity(capacity_runs, options.outstanding, seconds.min(MAX_CAPACITY))?;
    let names: Vec<String> = bench.contenders.iter().map(|each| each.name()).collect();
    let medians: Vec<Option<f64>> = capacity.iter().map(|runs| median(runs)).collect();
    let ours = names.iter().position(|name| name == OURS).filter(|&ours| medians[ours].is_some());
    let base = ours.or_else(|| medians.iter().position(Option::is_some));
    let Some((base, whole)) = base.and_then(|base| Some((base, medians[base]?))) else {
        return Err(bench.repeater.failure());
    };
    let rate = options.rate.unwrap_or(options.load * whole);
    let hold = bench.hold(hold_runs, options.outstanding, options.hold.unwrap_or_default())?;
    let course = Course::of(options.repetition.seconds, rate / whole, options.disturbance());
    let window = course.disturbance.map(|_| course::window(rate));
    let load = LoadPhase {
        rate,
        warm: course.warm,
        measure: course.measure,
        connections: options.outstanding,
        burst: None,
        window,
        scale,
    };
    let loads = bench.loads(runs, &load, course.disturbance)?;
    let setup = Setup { options, base: (names[base].clone(), whole), load };
    let found = bench.contenders.iter().zip(names).zip(capacity).zip(hold).zip(loads);
    let found = found.map(|((((contender, name), capacity), hold), loads)| Contender {
        name,
        settings: contender.settings(),
        capacity,
        hold,
        loads,
    });
    let found: Vec<Contender> = found.filter(Contender::is_complete).collect();
    if found.is_empty() {
        return Err(bench.repeater.failure());
    }
    let mut findings = findings(&setup, &found)?;
    findings.outcome.notes.extend(cores.note());
    bench.repeater.account(&mut findings.outcome)?;
    Ok(findings)
}

/// Returns the participating contenders of the path.
fn selected(options: &LoadOptions) -> Result<Vec<Box<dyn Transport>>, Error> {
    let Path::Loopback = options.path;
    let mut contenders = loopback::contenders();
    let names: Vec<String> = contenders.iter().map(|each| each.name()).collect();
    check_only(&options.only, &names.iter().map(String::as_str).collect::<Vec<_>>())?;
    contenders.retain(|each| options.only.is_empty() || options.only.contains(&each.name()));
    Ok(contenders)
}

/// Returns the median over the runs; `None` if all were lost.
fn median(runs: &[loopback::Measured<f64>]) -> Option<f64> {
    let results: Vec<f64> = runs.iter().map(|run| run.result).collect();
    (!results.is_empty()).then(|| Spread::over(&results).median)
}
