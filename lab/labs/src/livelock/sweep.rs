//! The order of measurement: every rate, in every mode.

use std::env;
use std::path::Path;

use super::curve::Curve;
use super::declaration::findings;
use super::mode::{HARDWARE, Mode};
use super::options::{LivelockOptions, Rates, SHARES};
use super::point::{Bench, Case, RatePoint};
use super::priority::Priority;
use crate::turns::Turns;
use apus_report::experiment::Experiment;
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_testbed::error::{Doing, Error, require};
use apus_testbed::fabric::RouterPath;
use apus_testbed::machine::{Cores, PmQosRequest};
use apus_testbed::repeat::Repeater;

/// Halvings in the search for the highest rate without loss.
const HALVINGS: usize = 5;

impl Experiment for LivelockOptions {
    type Error = Error;

    fn run(&self) -> Result<Findings, Error> {
        let program = env::current_exe().doing(|| "find this program's file".to_owned())?;
        run(self, &program)
    }
}

/// Measures all rates in all modes. `program` is an agent if its first argument is
/// [`apus_testbed::process::AGENT`].
///
/// # Errors
///
/// An option is out of range; this user may not create namespaces or have real-time priority; there
/// is only one core; or a process failed.
pub fn run(options: &LivelockOptions, program: &Path) -> Result<Findings, Error> {
    options.check()?;
    let cores = two_cores()?;
    if options.modes.iter().any(|mode| *mode != Mode::Apus) {
        Priority::RealTime(HARDWARE).check()?;
    }
    let crossing = RouterPath::up()?;
    let awake = PmQosRequest::open();
    let bench = Bench {
        crossing: &crossing,
        program,
        cores,
        monitor: options.monitor,
        seconds: options.seconds,
        train: options.train,
        seed: options.seed,
    };
    let cases = options.filter.cases().len() * options.modes.len();
    let each = match &options.rates {
        Rates::List(rates) => rates.len(),
        Rates::Auto => SHARES.len() + 1,
    };
    let phases = cases * (options.runs * each + HALVINGS);
    let repeater = Repeater::of(phases, Progress::of(phases));
    let rates = rates(options, &bench, &repeater)?;
    let mut curves = curves(options, &bench, &rates, &repeater)?;
    for curve in &mut curves {
        curve.loss_free = bench.loss_free(curve.case, &curve.medians(), &repeater)?;
    }
    drop(awake);
    if curves.is_empty() {
        return Err(repeater.failure());
    }
    let mut findings = findings(options, &curves);
    repeater.account(&mut findings.outcome)?;
    Ok(findings)
}

/// Returns the cores of the generator and of the router.
fn two_cores() -> Result<[usize; 2], Error> {
    let cores = Cores::choose();
    let both = cores.client.zip(cores.server).map(|(client, server)| [client, server]);
    both.ok_or_else(|| {
        Error::Peer(
            "this takes two cores, one for the load and one for the router, and this process may use only \
             one (see taskset(1))"
                .to_owned(),
        )
    })
}

/// Returns the rates in packets per second; `None` is as many as possible.
fn rates(
    options: &LivelockOptions,
    bench: &Bench<'_>,
    repeater: &Repeater,
) -> Result<Vec<Option<f64>>, Error> {
    match &options.rates {
        Rates::List(rates) => Ok(rates.iter().copied().map(Some).collect()),
        Rates::Auto => {
            let case = Case { mode: Mode::Apus, filter: false };
            let what = || bench.measure(case, None);
            let most = repeater.attempt(&case.to_string(), "which rates", what)?;
            let Some(most) = most.map(|point| point.offered) else {
                return Err(repeater.failure());
            };
            require(most > 0.0, "seconds", "nothing was sent in so short a time; try 0.25")?;
            Ok(SHARES.iter().map(|share| Some(share * most)).chain([None]).collect())
        }
    }
}

/// Measures all curves, mode by mode within each run. A run of a mode that lost a point is left
/// out, and so is a mode without a run.
fn curves(
    options: &LivelockOptions,
    bench: &Bench<'_>,
    rates: &[Option<f64>],
    repeater: &Repeater,
) -> Result<Vec<Curve>, Error> {
    let filters = options.filter.cases().iter();
    let cases: Vec<Case> = filters
        .flat_map(|&filter| options.modes.iter().map(move |&mode| Case { mode, filter }))
        .collect();
    let results = Turns::InOrder.measure(options.runs, cases.len(), |run, case| {
        let (case, name) = (cases[case], cases[case].to_string());
        let mut points = Vec::new();
        for (index, rate) in rates.iter().enumerate() {
            repeater.progress().step(&format!("run {run}, {name}"));
            let phase = format!("rate {}, run {run}", index + 1);
            points.push(repeater.attempt(&name, &phase, || bench.measure(case, *rate))?);
        }
        Ok(points.into_iter().collect::<Option<Vec<RatePoint>>>())
    })?;
    let measured = cases.into_iter().zip(results).filter(|(_, runs)| !runs.is_empty());
    Ok(measured.map(|(case, runs)| Curve::of(case, &runs)).collect())
}

impl Bench<'_> {
    /// Searches for the highest rate without loss, between the last point without losses and the
    /// next. The search ends early, with the best rate so far, if a point is lost.
    fn loss_free(
        &self,
        case: Case,
        curve: &[RatePoint],
        repeater: &Repeater,
    ) -> Result<f64, Error> {
        let free = curve.iter().take_while(|point| point.is_loss_free()).count();
        let mut low = free.checked_sub(1).map_or(0.0, |last| curve[last].offered);
        let Some(mut high) = curve.get(free).map(|point| point.offered) else { return Ok(low) };
        for _ in 0..HALVINGS {
            repeater.progress().step(&format!("{case}: where losses begin"));
            let rate = Some(f64::midpoint(low, high));
            let point = repeater
                .attempt(&case.to_string(), "where losses begin", || self.measure(case, rate))?;
            let Some(point) = point else { return Ok(low) };
            if point.is_loss_free() {
                low = point.offered;
            } else {
                high = point.offered;
            }
        }
        Ok(low)
    }
}
