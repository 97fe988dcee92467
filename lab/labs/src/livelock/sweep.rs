//! The order of measurement: every rate, in every mode.

use std::path::Path;

use super::curve::Curve;
use super::findings::found;
use super::options::SHARES;
use super::point::{Bench, Case, Point};
use super::priority::Priority;
use super::{Findings, Mode, Options, Rates, mode};
use apus_report::progress::Progress;
use apus_testbed::error::{Error, require};
use apus_testbed::fabric::RouterPath;
use apus_testbed::machine::{Cores, PmQosRequest};
use apus_testbed::repeat::Repeater;

/// Halvings in the search for the highest rate without loss.
const HALVINGS: usize = 5;

/// Measures all rates in all modes. `program` is an agent when its first argument is
/// [`apus_testbed::process::AGENT`].
///
/// # Errors
///
/// An option is out of range; this user may not create namespaces or have real-time priority; there is one
/// core only; or a process failed.
pub fn run(options: &Options, program: &Path) -> Result<Findings, Error> {
    options.check()?;
    let cores = two_cores()?;
    if options.modes.iter().any(|mode| *mode != Mode::Apus) {
        Priority::RealTime(mode::HARDWARE).check()?;
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
    let mut findings = found(options, &curves);
    repeater.account(&mut findings.outcome)?;
    Ok(findings)
}

/// Returns one for the generator, one for the router.
fn two_cores() -> Result<[usize; 2], Error> {
    let cores = Cores::choose();
    let both = cores.client.zip(cores.server).map(|(client, server)| [client, server]);
    both.ok_or_else(|| {
        Error::Peer(
            "this takes two cores, one for the load and one for the router, and this process may use one \
             only (see taskset(1))"
                .to_owned(),
        )
    })
}

/// Returns the packets per second; `None` is as many as possible.
fn rates(
    options: &Options,
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

/// Returns all curves. Modes take turns, so that what changes about the machine changes for all of them. A run of a mode
/// that has lost a point is left out, and so is a mode that has no run.
fn curves(
    options: &Options,
    bench: &Bench<'_>,
    rates: &[Option<f64>],
    repeater: &Repeater,
) -> Result<Vec<Curve>, Error> {
    let cases = options
        .filter
        .cases()
        .iter()
        .flat_map(|&filter| options.modes.iter().map(move |&mode| Case { mode, filter }));
    let curve = |case| Curve { case, runs: Vec::new(), loss_free: 0.0 };
    let mut curves: Vec<Curve> = cases.map(curve).collect();
    for number in 1..=options.runs {
        for curve in &mut curves {
            let (case, name) = (curve.case, curve.case.to_string());
            let mut points = Vec::new();
            for (index, rate) in rates.iter().enumerate() {
                repeater.progress().step(&format!("run {number}, {name}"));
                let phase = format!("rate {}, run {number}", index + 1);
                points.push(repeater.attempt(&name, &phase, || bench.measure(case, *rate))?);
            }
            let whole: Option<Vec<Point>> = points.into_iter().collect();
            curve.runs.extend(whole);
        }
    }
    curves.retain(|curve| !curve.runs.is_empty());
    Ok(curves)
}

impl Bench<'_> {
    /// Returns the highest rate without loss, between two points of the curve of which one has no losses. The search ends
    /// early, with the highest rate that is known, if a point cannot be had.
    fn loss_free(&self, case: Case, curve: &[Point], repeater: &Repeater) -> Result<f64, Error> {
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
