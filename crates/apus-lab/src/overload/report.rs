//! What do the figures say?

use serde_json::{Value, json};

use super::options::Options;
use super::sides::{LoadResult, Served};
use crate::result::{Figure, Outcome, Ratio, Row};
use crate::stats::Spread;
use crate::transport::Transport;

/// What one run found out.
#[derive(Debug)]
pub(super) struct Findings {
    /// Requests per second.
    pub(super) capacity: f64,
    /// By contender, and then by load.
    pub(super) loads: Vec<Vec<AtLoad>>,
    /// By contender.
    pub(super) idle: Vec<Option<Paused>>,
}

/// A contender at a load.
#[derive(Debug)]
pub(super) struct AtLoad {
    /// Requests per second that were offered.
    pub(super) rate: f64,
    pub(super) result: LoadResult,
}

/// A contender that had nothing to do for most of the time.
#[derive(Debug)]
pub(super) struct Paused {
    /// Nanoseconds that each first request took.
    pub(super) first: Vec<u64>,
    pub(super) served: Served,
}

impl Findings {
    pub(super) fn new(capacity: f64, contenders: usize) -> Self {
        let loads = (0..contenders).map(|_| Vec::new()).collect();
        Self { capacity, loads, idle: (0..contenders).map(|_| None).collect() }
    }
}

impl AtLoad {
    /// Requests per second that were answered in time.
    fn goodput(&self, seconds: f64) -> f64 {
        self.result.good as f64 / seconds
    }

    fn p99_us(&self) -> f64 {
        self.result.latency.p99 as f64 / 1e3
    }
}

/// Puts the result together.
pub(super) fn outcome(
    options: &Options,
    contenders: &[Box<dyn Transport>],
    runs: &[Findings],
) -> Outcome {
    let mut outcome = Outcome::new("overload", options.config());
    let capacity: Vec<f64> = runs.iter().map(|run| run.capacity / 1e3).collect();
    let settings = contenders.iter().map(|each| (each.name(), json!(each.settings())));
    outcome.config.insert(
        "capacity_krps".to_owned(),
        json!(crate::result::rounded(Spread::over(&capacity).median)),
    );
    outcome.config.insert("settings".to_owned(), Value::Object(settings.collect()));
    for (contender, transport) in contenders.iter().enumerate() {
        for (index, load) in options.loads.iter().enumerate() {
            let at: Vec<&AtLoad> = runs.iter().map(|run| &run.loads[contender][index]).collect();
            let name = format!("{}load={load}", prefix(contender, &**transport));
            outcome.rows.push(load_row(&name, options, &at));
            outcome.notes.extend(why(&name, &at));
        }
    }
    for (contender, transport) in contenders.iter().enumerate() {
        let name = format!("{}idle", prefix(contender, &**transport));
        let paused = runs.iter().filter_map(|run| run.idle[contender].as_ref());
        outcome.rows.extend(idle_row(&name, paused));
    }
    outcome.ratios = ratios(options, contenders, runs);
    outcome
}

/// The rows of apus are what the experiment is about, and have no name before theirs.
fn prefix(contender: usize, transport: &dyn Transport) -> String {
    if contender == 0 { String::new() } else { format!("{} ", transport.name()) }
}

fn load_row(name: &str, options: &Options, runs: &[&AtLoad]) -> Row {
    let each = |value: &dyn Fn(&AtLoad) -> f64| {
        let values: Vec<f64> = runs.iter().map(|run| value(run)).collect();
        Figure::Spread(Spread::over(&values))
    };
    let sum = |value: &dyn Fn(&LoadResult) -> u64| {
        Figure::Count(runs.iter().map(|run| value(&run.result)).sum())
    };
    Row::new(name)
        .with("offered_krps", each(&|at| at.rate / 1e3))
        .with("goodput_krps", each(&|at| at.goodput(options.seconds) / 1e3))
        .with("p50_us", each(&|at| at.result.latency.p50 as f64 / 1e3))
        .with("p99_us", each(&AtLoad::p99_us))
        .with("refused", sum(&|result| result.refused))
        .with("late", sum(&|result| result.answered - result.good))
        .with("dropped", sum(&|result| result.due - result.answered - result.refused))
        .with("application_share", each(&|at| application_share(options, at)))
}

/// Share of the server's threads' time that was spent on requests that were answered.
fn application_share(options: &Options, at: &AtLoad) -> f64 {
    let worked = at.result.answered as f64 * options.cost_us / 1e6;
    worked / options.seconds / options.threads as f64
}

fn idle_row<'a>(name: &str, runs: impl Iterator<Item = &'a Paused>) -> Option<Row> {
    let (mut shares, mut first) = (Vec::new(), Vec::new());
    for Paused { first: each, served } in runs {
        shares.push(served.cpu as f64 / served.elapsed as f64 * 100.0);
        let each: Vec<f64> = each.iter().map(|nanos| *nanos as f64 / 1e3).collect();
        first.push(Spread::over(&each).median);
    }
    let spread = |values: &[f64]| Figure::Spread(Spread::over(values));
    (!shares.is_empty()).then(|| {
        Row::new(name).with("idle_cpu_percent", spread(&shares)).with("wakeup_us", spread(&first))
    })
}

/// What the first failure was, if it was another one than being refused.
fn why(name: &str, runs: &[&AtLoad]) -> Option<String> {
    let why = runs.iter().filter_map(|run| run.result.why.as_deref());
    let other = why.into_iter().find(|why| !why.contains("overloaded"));
    other.map(|why| format!("{name}: not all that counts as refused was: {why}"))
}

/// The goodputs, one per run, at the load where their median is greatest: the peak of the curve that is drawn. The
/// greatest of each run would be the luckiest of eight tries, which no single one can keep up with.
fn peak(curve: &[Vec<f64>]) -> &[f64] {
    let median = |goodputs: &Vec<f64>| Spread::over(goodputs).median;
    let peak = curve.iter().max_by(|one, other| median(one).total_cmp(&median(other)));
    peak.map_or(&[], Vec::as_slice)
}

/// Goodput and tail at the greatest load, beside the best goodput and the tail of a busy server.
fn ratios(
    options: &Options,
    contenders: &[Box<dyn Transport>],
    runs: &[Findings],
) -> Vec<(String, Ratio)> {
    let last = options.loads.len() - 1;
    let most = options.loads[last];
    let busy = options.loads.iter().position(|load| *load == Options::BUSY);
    let mut ratios = Vec::new();
    let mut compare = |name: String, dividend: Vec<f64>, divisor: Vec<f64>| {
        ratios.extend(Ratio::over(&dividend, &divisor).map(|ratio| (name, ratio)));
    };
    for (contender, transport) in contenders.iter().enumerate() {
        let prefix = prefix(contender, &**transport);
        let at = |load: usize, value: &dyn Fn(&AtLoad) -> f64| {
            runs.iter().map(|run| value(&run.loads[contender][load])).collect::<Vec<f64>>()
        };
        let goodputs = |load| at(load, &|at| at.goodput(options.seconds));
        let curve: Vec<Vec<f64>> = (0..=last).map(goodputs).collect();
        compare(format!("{prefix}{most}x/peak"), curve[last].clone(), peak(&curve).to_vec());
        if let Some(busy) = busy {
            let name = format!("{prefix}p99 {most}x/{}x", Options::BUSY);
            compare(name, at(last, &AtLoad::p99_us), at(busy, &AtLoad::p99_us));
        }
    }
    let wakeups = |contender: usize| {
        let each = runs.iter().filter_map(|run| run.idle[contender].as_ref());
        let median = |paused: &Paused| {
            let first: Vec<f64> = paused.first.iter().map(|nanos| *nanos as f64).collect();
            Spread::over(&first).median
        };
        each.map(median).collect::<Vec<f64>>()
    };
    compare("wakeup apus/tcp".to_owned(), wakeups(0), wakeups(1));
    ratios
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lucky_run_makes_no_peak() {
        let curve = [vec![1.0, 9.0, 1.0], vec![5.0, 4.0, 5.0], vec![4.0, 4.0, 4.0]];
        assert_eq!(peak(&curve), [5.0, 4.0, 5.0]);
        assert_eq!(peak(&[]), [0.0; 0]);
    }
}
