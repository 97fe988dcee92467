//! The findings of the contention lab.

use serde_json::{Value, json};

use super::curve::{Curve, Points, count};
use super::forecast::Forecast;
use super::plots::plots;
use super::published::{PUBLISHED, Published, freebsd};
use super::words::sentences;
use super::{Contender, Options, Tasks};
use apus_report::experiment::config;
use apus_report::findings::Findings;
use apus_report::result::table::spread_in_words;
use apus_report::result::{Comparison, Figure, Outcome, Ratio, Row, Table, rounded, short};
use apus_report::stats::Spread;

/// The meaning of the figures of locks.
const WAITS: &str = "waits are of all turns at a lock, those that found it free with 0 ns; for fine-grained these are the \
                     locks of the pairs, of which each belongs to one worker, so that none is to be found taken; the \
                     kernel's locks cannot be seen";

/// Returns the result, for people and machines.
pub(super) fn found(options: &Options, curves: &[Curve], cores: usize) -> Findings {
    let kinds = options.tasks.each();
    let forecasts: Vec<Forecast> =
        kinds.iter().filter_map(|tasks| Forecast::of(*tasks, curves, cores)).collect();
    let mut outcome = Outcome::new("lab contention", config(options));
    // Those that the contract names are of processes, unless only threads were measured.
    let plain = kinds[0];
    for curve in curves {
        let forecast = forecasts.iter().find(|it| it.tasks == curve.tasks);
        outcome.rows.push(row(curve, plain, forecast));
    }
    outcome.rows.extend(PUBLISHED.iter().map(published));
    for tasks in kinds {
        let of = Of { curves, tasks: *tasks, mark: mark(*tasks, plain) };
        outcome.ratios.extend(of.ratios());
        outcome.comparisons.extend(of.comparisons());
    }
    outcome.notes.push(WAITS.to_owned());
    outcome.notes.extend(crowded(options, cores));
    let mut tables: Vec<Table> = Vec::new();
    for tasks in kinds {
        tables.extend(by_workers(curves, *tasks));
    }
    tables.extend(forecasts.iter().map(ahead));
    Findings::new(outcome, TITLE, LEAD)
        .with_columns(&[
            "one_kops",
            "most_kops",
            "scaling",
            "wait_ns",
            "wait_p99_ns",
            "found_taken",
        ])
        .with_all(plots(curves, &forecasts), sentences(curves, &forecasts), tables)
}

const TITLE: &str = "What does one lock for all local sockets cost?";

const LEAD: &str = "For years FreeBSD took one lock for every message over any local socket, and 96 processes, each with \
                    sockets of its own, got fewer messages through than six. Here each worker has a pair of its own, writes one \
                    byte and reads it itself, as in will-it-scale's unix1: under one lock that all share (global-lock), through \
                    the product's pairs, which share none (fine-grained), and through a socket pair of the kernel (unix).";

/// Returns what is to be known if workers share cores.
fn crowded(options: &Options, cores: usize) -> Option<String> {
    (options.workers > cores).then(|| {
        format!(
            "there are {cores} cores for up to {} workers: some share one, and a worker that loses its core while it holds a lock \
             blocks all others; the model is fitted to points of at most {cores} workers",
            options.workers
        )
    })
}

/// Returns what comes behind the name of a contender.
fn mark(tasks: Tasks, plain: Tasks) -> String {
    if tasks == plain { String::new() } else { format!(" {tasks}") }
}

/// Returns the name of the row of a contender.
pub(super) fn name(contender: Contender, tasks: Tasks, plain: Tasks) -> String {
    format!("{contender}{}", mark(tasks, plain))
}

fn row(curve: &Curve, plain: Tasks, forecast: Option<&Forecast>) -> Row {
    let (first, last) = (curve.first(), curve.last());
    let one = |run| first.runs.iter().find(|one| one.run == run);
    let scaling = last.runs.iter().filter_map(|n| Some(n.rate / one(n.run)?.rate));
    let scaling: Vec<f64> = scaling.collect();
    let scaling = (!scaling.is_empty()).then(|| Figure::Spread(Spread::over(&scaling)));
    let points: Vec<Value> = curve.points.iter().map(point).collect();
    let model = forecast.and_then(|forecast| forecast.json(curve.contender));
    Row::new(&name(curve.contender, curve.tasks, plain))
        .with("workers", Figure::Detail(json!(points)))
        .with("one_kops", Figure::Spread(Spread::over(&first.kops())))
        .with("most_kops", Figure::Spread(Spread::over(&last.kops())))
        .with_known("scaling", scaling)
        .with_known("wait_ns", last.wait_mean().map(Figure::Spread))
        .with_known("wait_p99_ns", last.wait_p99().map(Figure::Spread))
        .with_known("found_taken", last.taken().map(Figure::Spread))
        .with_known("hold_ns", last.hold().map(Figure::Spread))
        .with_known("model", model.map(Figure::Detail))
}

/// Returns all runs with one number of workers.
fn point(points: &Points) -> Value {
    let Spread { median, min, max } = Spread::over(&points.kops());
    let mut value = json!({
        "n": points.workers,
        "kops": rounded(median),
        "kops_min": rounded(min),
        "kops_max": rounded(max),
    });
    let seen = [
        ("wait_ns", points.wait_mean()),
        ("wait_p99_ns", points.wait_p99()),
        ("found_taken", points.taken()),
        ("hold_ns", points.hold()),
    ];
    for (name, spread) in seen {
        if let Some(spread) = spread {
            value[name] = json!(rounded(spread.median));
        }
    }
    value
}

/// Returns what others measured, to be held against.
fn published(published: &Published) -> Row {
    let value = |value: f64| Figure::Spread(Spread::over(&[value]));
    let (most, rate) = published.points[published.points.len() - 1];
    let point = |(n, rate): &(usize, f64)| json!({ "n": n, "kops": rounded(rate / 1e3) });
    let points: Vec<Value> = published.points.iter().map(point).collect();
    Row::new(&format!("published: {} (1 and {most})", published.name))
        .with("workers", Figure::Detail(json!(points)))
        .with("published", Figure::Detail(json!(true)))
        .with("one_kops", value(published.one() / 1e3))
        .with("most_kops", value(rate / 1e3))
        .with("scaling", value(rate / published.one()))
}

/// The curves of processes, or of threads.
struct Of<'a> {
    curves: &'a [Curve],
    tasks: Tasks,
    mark: String,
}

impl Of<'_> {
    fn get(&self, contender: Contender) -> Option<&Curve> {
        self.curves.iter().find(|it| it.tasks == self.tasks && it.contender == contender)
    }

    /// Contenders at the largest number of workers and with one; and what more workers bring to each.
    fn ratios(&self) -> Vec<(String, Ratio)> {
        use Contender::{FineGrained, GlobalLock, Unix};
        let mark = &self.mark;
        let mut ratios = Vec::new();
        let mut add = |name: String, dividend: &Points, divisor: &Points| {
            let ratio = Ratio::paired(&dividend.kops_by_run(), &divisor.kops_by_run());
            ratios.extend(ratio.map(|ratio| (name, ratio)));
        };
        let Some(ours) = self.get(FineGrained) else { return Vec::new() };
        let beside = || [GlobalLock, Unix].into_iter().filter_map(|other| self.get(other));
        for theirs in beside() {
            let name = format!("fine-grained/{}{mark}", theirs.contender);
            add(name, ours.last(), theirs.last());
        }
        for theirs in beside() {
            let name = format!("fine-grained/{}@one{mark}", theirs.contender);
            add(name, ours.first(), theirs.first());
        }
        for curve in Contender::ALL.into_iter().filter_map(|contender| self.get(contender)) {
            if curve.points.len() > 1 {
                let name = format!("{}@max/one{mark}", curve.contender);
                add(name, curve.last(), curve.first());
            }
        }
        ratios
    }

    /// Returns the product against the one lock, with as many workers as there were, and with one.
    fn comparisons(&self) -> Vec<Comparison> {
        let pair = self.get(Contender::FineGrained).zip(self.get(Contender::GlobalLock));
        let Some((ours, theirs)) = pair else { return Vec::new() };
        let both = ours.points.iter().zip(&theirs.points).rev();
        let chosen =
            both.filter(|(points, _)| points.workers == 1 || points.workers == ours.last().workers);
        let compare = |(ours, theirs): (&Points, &Points)| {
            let figure = format!("kops with {}", count(ours.workers, self.tasks));
            let of = Contender::FineGrained.to_string();
            let against = Contender::GlobalLock.to_string();
            Comparison::between(&figure, (&of, &ours.kops()), (&against, &theirs.kops()))
        };
        chosen.map(compare).collect()
    }
}

/// Returns the rates and waits by the number of workers.
fn by_workers(curves: &[Curve], tasks: Tasks) -> Vec<Table> {
    let curves: Vec<&Curve> = curves.iter().filter(|curve| curve.tasks == tasks).collect();
    let Some(first) = curves.first() else { return Vec::new() };
    let table = |title: String, names: Vec<String>, cells: &dyn Fn(&Points) -> Vec<String>| {
        let line = |at: usize, points: &Points| {
            let cells = curves.iter().flat_map(|curve| cells(&curve.points[at]));
            [points.workers.to_string()].into_iter().chain(cells).collect()
        };
        let lines = first.points.iter().enumerate().map(|(at, points)| line(at, points)).collect();
        let header = [tasks.to_string()].into_iter().chain(names).collect();
        Table { title, header, lines }
    };
    let names = curves.iter().map(|curve| curve.contender.to_string()).collect();
    let rates =
        table(format!("thousand operations a second, by the number of {tasks}"), names, &|it| {
            vec![spread_in_words(&Spread::over(&it.kops()))]
        });
    let seen = curves.iter().filter(|curve| curve.contender != Contender::Unix);
    let waits = ["wait", "p99", "taken"];
    let names = seen.flat_map(|curve| waits.map(|what| format!("{} {what}", curve.contender)));
    let cell = |spread: Option<Spread>| spread.map(|spread| short(spread.median));
    let title = format!(
        "nanoseconds that locks are waited for (mean, p99), and the share that is found taken, by the number of {tasks}"
    );
    let waits = table(title, names.collect(), &|it| {
        let seen = [it.wait_mean(), it.wait_p99(), it.taken()].map(cell);
        // Where the mean is known the share is known; a percentile may be unknown.
        if it.taken().is_some() { seen.map(Option::unwrap_or_default).to_vec() } else { Vec::new() }
    });
    vec![rates, waits]
}

/// Returns the model.
fn ahead(forecast: &Forecast) -> Table {
    let tasks = forecast.tasks.to_string();
    let published = |workers: usize| {
        let rates = freebsd().into_iter().map(move |it| it.at(workers));
        rates.map(|rate| rate.map_or_else(String::new, |rate| short(rate / 1e3)))
    };
    let line = |at: &super::forecast::Ahead| {
        let cells = [
            at.workers.to_string(),
            short(at.global),
            short(at.wait),
            short(at.fine),
            short(at.fine / at.global),
        ];
        cells.into_iter().chain(published(at.workers)).collect()
    };
    let header = [
        &tasks,
        "model: global-lock",
        "model: wait ns",
        "model: fine-grained",
        "model: ratio",
        "FreeBSD before",
        "FreeBSD after",
    ];
    Table {
        title: format!(
            "a model, not measured: thousand operations a second by the number of {tasks}, each with a core; beside it what \
             FreeBSD measured"
        ),
        header: header.map(str::to_owned).to_vec(),
        lines: forecast.points.iter().map(line).collect(),
    }
}

#[cfg(test)]
pub(super) mod made_up {
    use super::*;
    use crate::contention::curve::made_up::curve;

    /// Processes and threads, one worker and two, three runs.
    pub(in crate::contention) fn curves() -> Vec<Curve> {
        let each = |tasks| {
            [
                curve(
                    Contender::GlobalLock,
                    tasks,
                    &[(1, &[4.9e3, 5e3, 5.1e3]), (2, &[3e3, 2.9e3, 3.1e3])],
                ),
                curve(
                    Contender::FineGrained,
                    tasks,
                    &[(1, &[5.9e3, 6e3, 6.1e3]), (2, &[11e3, 12e3, 11.9e3])],
                ),
                curve(Contender::Unix, tasks, &[(1, &[400.0; 3]), (2, &[700.0, 720.0, 710.0])]),
            ]
        };
        [Tasks::Processes, Tasks::Threads].into_iter().flat_map(each).collect()
    }

    pub(in crate::contention) fn findings() -> Findings {
        let options = Options { workers: 2, runs: 3, ..Options::default() };
        let mut findings = found(&options, &curves(), 2);
        findings.outcome.notes.push("others were busy".to_owned());
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::made_up::findings;
    use super::*;
    use apus_report::findings::read;

    #[test]
    fn machines_read_every_point_and_every_model() {
        let parts = ["config", "rows", "ratios", "comparisons", "notes"];
        insta::assert_snapshot!(read::json(&findings(), &parts));
    }

    #[test]
    fn people_read_tables_and_sentences() {
        insta::assert_snapshot!(read::text(&findings()));
    }

    #[test]
    fn the_page_has_all_of_it() {
        let findings = findings();
        let page = read::page(&findings);
        for expected in
            ["a model, not measured", "others were busy", "fine-grained&#x2f;global-lock"]
        {
            assert!(page.to_lowercase().contains(expected), "{expected}");
        }
        assert!(page.contains("95 % confidence"), "the comparison");
        assert!(page.contains(&findings.outcome.machine.kernel), "where it ran");
        assert_eq!(findings.svg_files().len(), findings.plots().count());
    }

    #[test]
    fn what_is_measured_alone_has_the_names_of_the_contract() {
        let curves: Vec<Curve> =
            made_up::curves().into_iter().filter(|it| it.tasks == Tasks::Threads).collect();
        let options = Options { workers: 2, tasks: Tasks::Threads, runs: 3, ..Options::default() };
        let found = found(&options, &curves, 2).outcome;
        let names: Vec<&str> = found.rows.iter().map(|row| &row.name[..]).take(3).collect();
        assert_eq!(names, ["global-lock", "fine-grained", "unix"]);
        assert!(found.ratios.iter().any(|(name, _)| name == "fine-grained/global-lock"));
    }

    #[test]
    fn workers_that_share_cores_are_noted() {
        let notes = |workers| {
            let options = Options { workers, ..Options::default() };
            found(&options, &made_up::curves(), 2).outcome.notes.join(" ")
        };
        assert!(notes(3).contains("there are 2 cores for up to 3 workers"));
        assert!(!notes(2).contains("there are"));
    }
}
