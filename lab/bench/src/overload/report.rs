//! The result of the overload experiment: rows of each load, and ratios.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::options::OverloadOptions;
use super::sides::{LoadResult, Served};
use crate::contenders::transport::Transport;
use apus_report::chart::{Axis, Heading, Line, Plot, Point, Scale, Stroke, short_number};
use apus_report::experiment::config;
use apus_report::findings::Findings;
use apus_report::result::{Figure, Outcome, Ratio, Row, short};
use apus_report::stats::{Percentiles, Spread};

/// The results of one run.
#[derive(Debug)]
pub(super) struct Run {
    /// Number of the run, from 0.
    number: usize,
    /// Requests per second.
    pub(super) capacity: f64,
    /// By contender, and then by load; `None` if it was lost.
    pub(super) loads: Vec<Vec<Option<AtLoad>>>,
    /// By contender; `None` if it was lost.
    pub(super) idle: Vec<Option<Paused>>,
}

/// A contender at a load.
#[derive(Debug)]
pub(super) struct AtLoad {
    /// Requests per second that were offered.
    pub(super) rate: f64,
    pub(super) result: LoadResult,
    pub(super) served: Served,
}

/// A contender that was idle for most of the time.
#[derive(Debug)]
pub(super) struct Paused {
    /// Nanoseconds that each first request took.
    pub(super) first: Vec<u64>,
    pub(super) served: Served,
}

impl Run {
    pub(super) fn new(number: usize, capacity: f64, contenders: usize) -> Self {
        let loads = (0..contenders).map(|_| Vec::new()).collect();
        Self { number, capacity, loads, idle: (0..contenders).map(|_| None).collect() }
    }
}

impl LoadResult {
    /// Returns the number of requests without any response before the client left.
    const fn dropped(&self) -> u64 {
        self.due - self.answered - self.refused - self.failed
    }
}

impl AtLoad {
    /// Returns the number of requests per second answered in time.
    fn goodput(&self, seconds: f64) -> f64 {
        self.result.good as f64 / seconds
    }

    /// Returns this percentile in microseconds; `None` if no request was answered: 0 would look
    /// fast.
    fn latency_us(&self, percentile: fn(&Percentiles) -> u64) -> Option<f64> {
        let latency = &self.result.latency;
        (latency.samples > 0).then(|| percentile(latency) as f64 / 1e3)
    }

    fn p99_us(&self) -> Option<f64> {
        self.latency_us(|latency| latency.p99)
    }
}

/// Puts the result together.
pub(super) fn outcome(
    options: &OverloadOptions,
    contenders: &[Box<dyn Transport>],
    runs: &[Run],
) -> Outcome {
    let mut outcome = Outcome::new("overload", config(options));
    let capacity: Vec<f64> = runs.iter().map(|run| run.capacity / 1e3).collect();
    let settings = contenders.iter().map(|each| (each.name(), json!(each.settings())));
    outcome.config.insert(
        "capacity_krps".to_owned(),
        json!(apus_report::result::rounded(Spread::over(&capacity).median)),
    );
    outcome.config.insert("settings".to_owned(), Value::Object(settings.collect()));
    for contender in 0..contenders.len() {
        for (index, load) in options.loads.iter().enumerate() {
            let at = runs.iter().filter_map(|run| run.loads[contender][index].as_ref());
            let at: Vec<&AtLoad> = at.collect();
            if at.is_empty() {
                continue;
            }
            let name = at_load(*load, contender, contenders);
            outcome.rows.push(load_row(&name, options, &at));
            outcome
                .notes
                .extend(why(&name, &at).into_iter().chain(unanswered(&name, options, &at)));
        }
    }
    for contender in 0..contenders.len() {
        let name = at_rest(contender, contenders);
        let paused = runs.iter().filter_map(|run| run.idle[contender].as_ref());
        outcome.rows.extend(idle_row(&name, paused));
    }
    outcome.ratios = ratios(options, contenders, runs);
    outcome
}

/// Returns the name of the row of a contender at a load.
pub(super) fn at_load(load: f64, contender: usize, contenders: &[Box<dyn Transport>]) -> String {
    format!("{}load={load}", prefix(contender, &*contenders[contender]))
}

/// Returns the row name of a contender that is idle for most of the time.
pub(super) fn at_rest(contender: usize, contenders: &[Box<dyn Transport>]) -> String {
    format!("{}idle", prefix(contender, &*contenders[contender]))
}

/// Returns the prefix of a contender's row names; empty for apus, the subject of the experiment.
fn prefix(contender: usize, transport: &dyn Transport) -> String {
    if contender == 0 { String::new() } else { format!("{} ", transport.name()) }
}

fn load_row(name: &str, options: &OverloadOptions, runs: &[&AtLoad]) -> Row {
    let latency = |percentile| {
        let values: Vec<f64> = runs.iter().filter_map(|run| run.latency_us(percentile)).collect();
        (!values.is_empty()).then(|| Figure::Spread(Spread::over(&values)))
    };
    Row::new(name)
        .with_spread("offered_krps", runs, |at| at.rate / 1e3)
        .with_spread("goodput_krps", runs, |at| at.goodput(options.repetition.seconds) / 1e3)
        .with_known("p50_us", latency(|latency| latency.p50))
        .with_known("p99_us", latency(|latency| latency.p99))
        .with_sum("refused", runs, |at| at.result.refused)
        .with_sum("late", runs, |at| at.result.answered - at.result.good)
        .with_sum("failed", runs, |at| at.result.failed)
        .with_sum("dropped", runs, |at| at.result.dropped())
        .with_spread("application_share", runs, |at| application_share(options, at))
        .with_known("counters", counters(runs))
}

/// Returns the counters of the server's transport over all runs, if it has counters.
fn counters(runs: &[&AtLoad]) -> Option<Figure> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in runs.iter().flat_map(|run| &run.served.counters) {
        *sums.entry(name).or_default() += count;
    }
    (!sums.is_empty()).then(|| Figure::Detail(json!(sums)))
}

/// Returns the share of the server's threads' time that was spent on requests that were answered.
fn application_share(options: &OverloadOptions, at: &AtLoad) -> f64 {
    let worked = at.result.answered as f64 * options.cost_us / 1e6;
    worked / options.repetition.seconds / options.threads as f64
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

/// Returns a note with the number of runs in which no request was answered, if there were any.
fn unanswered(name: &str, options: &OverloadOptions, runs: &[&AtLoad]) -> Option<String> {
    let silent = runs.iter().filter(|run| run.result.answered == 0).count();
    let (count, patience) = (runs.len(), options.patience_ms);
    (silent > 0).then(|| {
        format!(
            "{name}: in {silent} of {count} runs none of the requests that count was answered before the client \
             left, {patience} ms after the last one was due: they waited behind those of the warm-up"
        )
    })
}

/// Returns the first failure; a refusal does not count as one.
fn why(name: &str, runs: &[&AtLoad]) -> Option<String> {
    let why = runs.iter().find_map(|run| run.result.why.as_deref());
    why.map(|why| format!("{name}: a call failed: {why}"))
}

/// Returns the goodputs, one per run, at the load with the highest median: the peak of the drawn
/// curve. The maximum of each run would be the luckiest of eight tries, an unfair standard for a
/// single one. Goodputs have the numbers of their runs.
fn peak(curve: &[Vec<(usize, f64)>]) -> &[(usize, f64)] {
    let median = |goodputs: &Vec<(usize, f64)>| {
        Spread::over(&goodputs.iter().map(|(_, goodput)| *goodput).collect::<Vec<_>>()).median
    };
    let known = curve.iter().filter(|goodputs| !goodputs.is_empty());
    let peak = known.max_by(|one, other| median(one).total_cmp(&median(other)));
    peak.map_or(&[], Vec::as_slice)
}

/// Returns the findings of an outcome, with goodput and tail against the load as plots.
pub(super) fn findings(outcome: Outcome) -> Findings {
    let heading = |name, title| Heading {
        name,
        title,
        caption: "By the offered load. Points are medians over the runs, whiskers reach from the least to the greatest.",
    };
    let goodput = heading("overload-goodput", "Goodput against load");
    let tail = heading("overload-p99", "99th percentile of the latency against load");
    let plots = vec![
        against_load(
            &outcome,
            goodput,
            "goodput_krps",
            ("thousand requests per second", Scale::Linear),
        ),
        against_load(&outcome, tail, "p99_us", ("microseconds", Scale::Logarithmic)),
    ];
    let lead = "A server computes for a fixed time on each request. Requests are due at random instants, first fewer than \
                it can serve, then several times as many. Goodput is what was answered before the client lost patience.";
    let title = "What becomes of a server that is offered more than it can do?";
    Findings::new(outcome, title, lead).with_all(plots, Vec::new(), [])
}

/// Draws a figure of the rows of each contender against the offered load.
fn against_load(outcome: &Outcome, heading: Heading<'_>, figure: &str, y: (&str, Scale)) -> Plot {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for row in &outcome.rows {
        let (contender, load) = row.name.rsplit_once(' ').unwrap_or(("apus", &row.name));
        let spread = |name| match row.get(name) {
            Some(Figure::Spread(spread)) => Some(*spread),
            _ => None,
        };
        let (Some(x), Some(y)) = (spread("offered_krps"), spread(figure)) else { continue };
        let point = Point {
            x: x.median,
            y: y.median,
            range: Some((y.min, y.max)),
            at: load.into(),
            says: short(y.median).into(),
        };
        match lines.iter_mut().find(|line| line.name == contender) {
            Some(line) => line.points.push(point),
            None => {
                let (name, colour) = (contender.into(), lines.len());
                lines.push(Line { name, colour, stroke: Stroke::Plain, points: vec![point] });
            }
        }
    }
    let offered: Vec<f64> = lines.iter().flat_map(|line| &line.points).map(|it| it.x).collect();
    let x = Axis::linear("thousand requests per second offered", offered.into_iter(), short_number);
    Plot::lines(heading, x, y, lines)
}

/// Ratios of goodput and tail at the highest load to the best goodput and the tail of a busy
/// server.
fn ratios<'a>(
    options: &OverloadOptions,
    contenders: &[Box<dyn Transport>],
    runs: &'a [Run],
) -> Vec<(String, Ratio)> {
    let last = options.loads.len() - 1;
    let most = options.loads[last];
    let busy = options.loads.iter().position(|load| *load == OverloadOptions::BUSY);
    let mut ratios = Vec::new();
    let mut compare = |name: String, dividend: Vec<(usize, f64)>, divisor: Vec<(usize, f64)>| {
        ratios.extend(Ratio::paired(&dividend, &divisor).map(|ratio| (name, ratio)));
    };
    for (contender, transport) in contenders.iter().enumerate() {
        let prefix = prefix(contender, &**transport);
        let at = |load: usize| {
            let at = move |run: &'a Run| Some((run.number, run.loads[contender][load].as_ref()?));
            runs.iter().filter_map(at)
        };
        let goodputs = |load: usize| -> Vec<(usize, f64)> {
            let goodput = |at: &AtLoad| at.goodput(options.repetition.seconds);
            at(load).map(|(run, at)| (run, goodput(at))).collect()
        };
        let curve: Vec<Vec<(usize, f64)>> = (0..=last).map(goodputs).collect();
        compare(format!("{prefix}{most}x/peak"), curve[last].clone(), peak(&curve).to_vec());
        if let Some(busy) = busy {
            // Only if each run answered a request; otherwise there is no latency to compare.
            let tails = |load: usize| -> Option<Vec<(usize, f64)>> {
                at(load).map(|(run, at)| Some((run, at.p99_us()?))).collect()
            };
            if let Some((most_tails, busy_tails)) = tails(last).zip(tails(busy)) {
                let name = format!("{prefix}p99 {most}x/{}x", OverloadOptions::BUSY);
                compare(name, most_tails, busy_tails);
            }
        }
    }
    let wakeups = |contender: usize| {
        let each = runs.iter().filter_map(|run| Some((run.number, run.idle[contender].as_ref()?)));
        let median = |paused: &Paused| {
            let first: Vec<f64> = paused.first.iter().map(|nanos| *nanos as f64).collect();
            Spread::over(&first).median
        };
        each.map(|(run, paused)| (run, median(paused))).collect::<Vec<(usize, f64)>>()
    };
    compare("wakeup apus/tcp".to_owned(), wakeups(0), wakeups(1));
    ratios
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Repetition;
    use crate::overload::sides::contenders;

    /// Runs of 1 s, at 0.75 times the capacity of 1,000 requests a second and at four times.
    fn options() -> OverloadOptions {
        let repetition = Repetition { seconds: 1.0, ..OverloadOptions::default().repetition };
        OverloadOptions {
            loads: vec![0.75, 4.0],
            cost_us: 500.0,
            repetition,
            ..OverloadOptions::default()
        }
    }

    fn at(rate: f64, answered: u64, refused: u64, p99_us: u64) -> AtLoad {
        let (p50, p99) = (p99_us * 500, p99_us * 1_000);
        let latency = Percentiles { p50, p99, p999: p99, samples: answered };
        let (due, good) = (rate as u64, answered.saturating_sub(10));
        let result = LoadResult { due, good, answered, refused, failed: 0, latency, why: None };
        let counters = BTreeMap::from([("feedback_stops".to_owned(), refused / 1_000)]);
        AtLoad { rate, result, served: Served { counters, ..Served::default() } }
    }

    /// Returns a run with these results at four times the capacity, for apus and for TCP.
    fn run(apus: AtLoad, tcp: AtLoad) -> Run {
        let idle = |first| {
            let served = Served { cpu: 3_000_000, elapsed: 3_000_000_000, ..Served::default() };
            Some(Paused { first: vec![9_000_000, first, first], served })
        };
        let [busy_apus, busy_tcp] = [2_000, 1_000].map(|p99_us| at(750.0, 750, 0, p99_us));
        Run {
            number: 0,
            capacity: 1_000.0,
            loads: vec![vec![Some(busy_apus), Some(apus)], vec![Some(busy_tcp), Some(tcp)]],
            idle: vec![idle(60_000), idle(40_000)],
        }
    }

    fn of(mut runs: Vec<Run>) -> Outcome {
        runs.iter_mut().enumerate().for_each(|(number, run)| run.number = number);
        outcome(&options(), &contenders(1), &runs)
    }

    fn figure(outcome: &Outcome, row: &str, name: &str) -> Value {
        let rows = json!(outcome.rows);
        let row = rows.as_array().unwrap().iter().find(|it| it["name"] == row).unwrap();
        row[name].clone()
    }

    fn ratio(outcome: &Outcome, name: &str) -> Option<f64> {
        outcome.ratios.iter().find(|(each, _)| each == name).map(|(_, ratio)| ratio.median)
    }

    #[test]
    fn every_request_is_in_one_column() {
        let found = of(vec![
            run(at(4_000.0, 1_010, 2_980, 4_000), at(4_000.0, 100, 0, 50_000)),
            run(at(4_000.0, 910, 3_090, 6_000), at(4_000.0, 100, 0, 50_000)),
        ]);
        let load = |name| figure(&found, "load=4", name);
        assert_eq!(load("offered_krps"), 4.0);
        assert_eq!([load("goodput_krps"), load("goodput_krps_min")], [0.95, 0.9]);
        assert_eq!([load("refused"), load("late"), load("dropped")], [6_070, 20, 10]);
        assert_eq!(load("counters"), json!({ "feedback_stops": 5 }), "2 and 3");
        assert_eq!([load("p50_us"), load("p99_us")], [2_500.0, 5_000.0]);
        assert_eq!(load("application_share"), 0.48, "of one core: 960 requests of 500 us a second");
        assert_eq!(ratio(&found, "4x/peak"), Some(1.0));
        assert_eq!(ratio(&found, "p99 4x/0.75x"), Some(2.5));
        assert_eq!(ratio(&found, "tcp 4x/peak"), Some(0.12162), "90 of 740");
        assert_eq!(ratio(&found, "wakeup apus/tcp"), Some(1.5), "the middle one of each run");
        assert_eq!(figure(&found, "idle", "idle_cpu_percent"), 0.1);
        assert_eq!(found.notes, [""; 0]);
    }

    #[test]
    fn who_answers_nothing_has_no_latency_rather_than_none() {
        let silent = || run(at(4_000.0, 1_000, 3_000, 4_000), at(4_000.0, 0, 0, 0));
        let slow = run(at(4_000.0, 1_000, 3_000, 4_000), at(4_000.0, 10, 0, 50_000));
        let found = of(vec![silent(), slow, silent()]);
        assert_eq!(figure(&found, "tcp load=4", "p99_us"), 50_000.0, "of the run that has one");
        assert_eq!(ratio(&found, "tcp p99 4x/0.75x"), None);
        assert_eq!(ratio(&found, "p99 4x/0.75x"), Some(2.0), "apus has one");
        assert_eq!(found.notes.len(), 1);
        assert!(found.notes[0].starts_with("tcp load=4: in 2 of 3 runs none"), "{:?}", found.notes);

        let found = of(vec![silent()]);
        assert_eq!(figure(&found, "tcp load=4", "p99_us"), Value::Null);
        assert_eq!(figure(&found, "tcp load=4", "goodput_krps"), 0.0);
        assert_eq!(figure(&found, "tcp load=4", "dropped"), 4_000);
    }

    #[test]
    fn what_failed_for_another_reason_is_said() {
        let mut one = run(at(4_000.0, 1_000, 2_000, 4_000), at(4_000.0, 10, 0, 50_000));
        let result = &mut one.loads[0][1].as_mut().unwrap().result;
        result.failed = 7;
        result.why = Some("call X: silent for 1 s".to_owned());
        let found = of(vec![one]);
        assert_eq!(found.notes, ["load=4: a call failed: call X: silent for 1 s"]);
        let load = |name| figure(&found, "load=4", name);
        assert_eq!([load("refused"), load("failed"), load("dropped")], [2_000, 7, 993]);
    }

    #[test]
    fn a_lucky_run_makes_no_peak() {
        let curve = [[1.0, 9.0, 1.0], [5.0, 4.0, 5.0], [4.0, 4.0, 4.0]];
        let mut curve = curve.map(|goodputs| goodputs.into_iter().enumerate().collect()).to_vec();
        curve.push(Vec::new());
        assert_eq!(peak(&curve), [(0, 5.0), (1, 4.0), (2, 5.0)]);
        assert_eq!(peak(&[]), []);
    }

    #[test]
    fn what_was_lost_leaves_the_rest_as_it_is() {
        let whole = || run(at(4_000.0, 1_010, 2_980, 4_000), at(4_000.0, 100, 0, 50_000));
        let mut broken = whole();
        broken.loads[0][1] = None;
        broken.idle[0] = None;
        let found = of(vec![broken, whole()]);
        assert_eq!(figure(&found, "load=4", "dropped"), 10, "of one run");
        assert_eq!(figure(&found, "load=0.75", "dropped"), 0);
        assert_eq!(ratio(&found, "4x/peak"), Some(1.0));
        assert_eq!(ratio(&found, "wakeup apus/tcp"), Some(1.5));
        let mut broken = whole();
        broken.loads[1][1] = None;
        let found = of(vec![broken]);
        assert!(found.rows.iter().all(|row| row.name != "tcp load=4"));
        assert_eq!(ratio(&found, "tcp 4x/peak"), None);
    }
}
