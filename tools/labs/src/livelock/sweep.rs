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
use apus_testbed::machine::{BackgroundLoad, Cores, PmQosRequest};

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
    let neighbours = BackgroundLoad::watch();
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
    let rates = rates(options, &bench)?;
    let mut curves = curves(options, &bench, &rates)?;
    let progress = Progress::of(curves.len());
    for curve in &mut curves {
        progress.step(&format!("{}: where losses begin", curve.case));
        curve.loss_free = bench.loss_free(curve.case, &curve.medians())?;
    }
    drop(progress);
    drop(awake);
    Ok(found(options, &curves, neighbours.note()))
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
fn rates(options: &Options, bench: &Bench<'_>) -> Result<Vec<Option<f64>>, Error> {
    match &options.rates {
        Rates::List(rates) => Ok(rates.iter().copied().map(Some).collect()),
        Rates::Auto => {
            let case = Case { mode: Mode::Apus, filter: false };
            let most = bench.measure(case, None)?.offered;
            require(most > 0.0, "seconds", "nothing was sent in so short a time; try 0.25")?;
            Ok(SHARES.iter().map(|share| Some(share * most)).chain([None]).collect())
        }
    }
}

/// Returns all curves. Modes take turns, so that what changes about the machine changes for all of them.
fn curves(
    options: &Options,
    bench: &Bench<'_>,
    rates: &[Option<f64>],
) -> Result<Vec<Curve>, Error> {
    let cases = options
        .filter
        .cases()
        .iter()
        .flat_map(|&filter| options.modes.iter().map(move |&mode| Case { mode, filter }));
    let curve = |case| Curve { case, runs: Vec::new(), loss_free: 0.0 };
    let mut curves: Vec<Curve> = cases.map(curve).collect();
    let progress = Progress::of(options.runs * curves.len() * rates.len());
    for number in 1..=options.runs {
        for curve in &mut curves {
            let case = curve.case;
            let mut points = Vec::new();
            for rate in rates {
                progress.step(&format!("run {number}, {case}"));
                points.push(bench.measure(case, *rate)?);
            }
            curve.runs.push(points);
        }
    }
    Ok(curves)
}

impl Bench<'_> {
    /// Returns the highest rate without loss, between two points of the curve of which one has no losses.
    fn loss_free(&self, case: Case, curve: &[Point]) -> Result<f64, Error> {
        let free = curve.iter().take_while(|point| point.is_loss_free()).count();
        let mut low = free.checked_sub(1).map_or(0.0, |last| curve[last].offered);
        let Some(mut high) = curve.get(free).map(|point| point.offered) else { return Ok(low) };
        for _ in 0..HALVINGS {
            let point = self.measure(case, Some(f64::midpoint(low, high)))?;
            if point.is_loss_free() {
                low = point.offered;
            } else {
                high = point.offered;
            }
        }
        Ok(low)
    }
}
