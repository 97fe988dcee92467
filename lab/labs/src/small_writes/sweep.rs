//! The order of measurement: times first, then packets.

use std::env;
use std::path::Path;
use std::time::Duration;

use super::capture::Capture;
use super::declaration::findings;
use super::measurements::Measured;
use super::options::SmallWritesOptions;
use super::side::exchange;
use super::tally::Plan;
use crate::turns::Turns;
use apus_report::experiment::Experiment;
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_testbed::clock;
use apus_testbed::error::{Doing, Error};
use apus_testbed::machine::Cores;
use apus_testbed::process::Spawner;
use apus_testbed::repeat::Repeater;

/// Exchanges before the measured ones.
const WARM_UP: u64 = 200;

impl Experiment for SmallWritesOptions {
    type Error = Error;

    fn run(&self) -> Result<Findings, Error> {
        let program = env::current_exe().doing(|| "find this program's file".to_owned())?;
        run(self, &program)
    }
}

/// Runs the experiment. `program` is an agent if its first argument is
/// [`apus_testbed::process::AGENT`].
///
/// # Errors
///
/// An option is out of range, or a side failed. It is no error if packets cannot be captured: the
/// result says so.
pub fn run(options: &SmallWritesOptions, program: &Path) -> Result<Findings, Error> {
    options.check()?;
    let cores = Cores::choose();
    let options =
        &SmallWritesOptions { repetition: options.repetition.on(cores), ..options.clone() };
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
    let host = Spawner::Processes(program.to_owned());
    let (runs, turns) = (options.repetition.runs, Turns::Shuffled { seed: plan.seed });
    let results = turns.measure(runs, variants.len(), |run, index| {
        let variant = variants[index];
        repeater.progress().step(&format!("run {run} of {runs}: {variant}"));
        repeater.attempt(variant.name, &format!("run {run}"), || {
            exchange(variant, &plan, cores, &host).map(|(tally, _)| tally)
        })
    })?;
    let measured = variants.iter().copied().zip(results).filter(|(_, runs)| !runs.is_empty());
    let mut measured: Vec<Measured> = measured
        .map(|(variant, runs)| Measured { variant, runs, anatomy: Err(String::new()) })
        .collect();
    if measured.is_empty() {
        return Err(repeater.failure());
    }
    capture_all(&plan, cores, program, repeater.progress(), &mut measured);
    let mut findings = findings(options, &measured, cores.note().into_iter());
    repeater.account(&mut findings.outcome)?;
    Ok(findings)
}

/// Captures the packets of all variants, after all times have been taken: a capture costs time.
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
