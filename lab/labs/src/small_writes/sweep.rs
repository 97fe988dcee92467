//! The order of measurement: times first, then packets.

use std::path::Path;
use std::time::Duration;

use apus_workload::{Stream, rng};
use rand::seq::SliceRandom;

use super::capture::Capture;
use super::findings::found;
use super::measurements::Measured;
use super::side::exchange;
use super::tally::Plan;
use super::{Findings, Options};
use apus_report::progress::Progress;
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::machine::Cores;
use apus_testbed::process::Spawner;
use apus_testbed::repeat::Repeater;

/// Exchanges before what counts.
const WARM_UP: u64 = 200;

/// Runs the experiment. `program` is an agent when its first argument is [`apus_testbed::process::AGENT`].
///
/// # Errors
///
/// An option does not fit, or a side failed. Packets that cannot be seen are no error: the result says so.
pub fn run(options: &Options, program: &Path) -> Result<Findings, Error> {
    options.check()?;
    let cores = Cores::choose();
    let options = &Options { repetition: options.repetition.on(cores), ..options.clone() };
    let plan = Plan {
        exchanges: options.exchanges,
        time: clock::as_nanoseconds(Duration::from_secs_f64(options.repetition.seconds)),
        warm_up: WARM_UP,
        seed: options.repetition.seed,
        poll: options.repetition.poll,
    };
    let variants = options.variants();
    let phases = (options.repetition.runs + 1) * variants.len();
    let repeater = Repeater::of(phases, Progress::of(phases));
    let mut measured: Vec<Measured> = variants
        .into_iter()
        .map(|variant| Measured {
            variant,
            runs: Vec::new(),
            numbers: Vec::new(),
            anatomy: Err(String::new()),
        })
        .collect();
    time(options, &plan, cores, program, &repeater, &mut measured)?;
    measured.retain(|each| !each.runs.is_empty());
    if measured.is_empty() {
        return Err(repeater.failure());
    }
    capture_all(&plan, cores, program, repeater.progress(), &mut measured);
    let mut findings = found(options, &measured, cores.note().into_iter());
    repeater.account(&mut findings.outcome)?;
    Ok(findings)
}

/// Each run measures the variants in a random order, so that changes of the machine's pace favour none of them.
fn time(
    options: &Options,
    plan: &Plan,
    cores: Cores,
    program: &Path,
    repeater: &Repeater,
    measured: &mut [Measured],
) -> Result<(), Error> {
    let host = Spawner::Processes(program.to_owned());
    let mut order: Vec<usize> = (0..measured.len()).collect();
    let mut chance = rng(options.repetition.seed, Stream::Order);
    for run in 1..=options.repetition.runs {
        order.shuffle(&mut chance);
        for &index in &order {
            let Measured { variant, runs, numbers, .. } = &mut measured[index];
            repeater
                .progress()
                .step(&format!("run {run} of {}: {variant}", options.repetition.runs));
            let tally = repeater.attempt(variant.name, &format!("run {run}"), || {
                exchange(variant, plan, cores, &host).map(|(tally, _)| tally)
            })?;
            numbers.extend(tally.is_some().then_some(run));
            runs.extend(tally);
        }
    }
    Ok(())
}

/// Once all times are known, since looking takes some.
fn capture_all(
    plan: &Plan,
    cores: Cores,
    program: &Path,
    progress: &Progress,
    to: &mut [Measured],
) {
    let capture = Capture::prepare(program).map_err(|error| error.to_string());
    for Measured { variant, anatomy, .. } in to {
        progress.step(&format!("packets of {variant}"));
        *anatomy = match &capture {
            Ok(capture) => capture.of(variant, plan, cores).map_err(|error| error.to_string()),
            Err(why) => Err(why.clone()),
        };
    }
}
