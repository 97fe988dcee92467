//! The report of the contention lab, declared: texts, figures, ratios and tables.

use serde_json::json;

use super::contender::Contender;
use super::crew::CrewResult;
use super::curve::{Curve, HOLD, KOPS, TAKEN, WAIT_MEAN, WAIT_P99, count};
use super::forecast::{Ahead, Forecast};
use super::options::{ContentionOptions, Tasks};
use super::plots::plots;
use super::published::{PUBLISHED, freebsd};
use super::sentences::sentences;
use apus_report::declaration::{Declaration, Quotient, RowFigure};
use apus_report::findings::Findings;
use apus_report::published::{PublishedCurve, figure};
use apus_report::result::table::spread_in_words;
use apus_report::result::{Comparison, Figure, Row, Table, rounded, short};
use apus_report::runs::Measure;
use apus_report::series::{self, SeriesPoint};

const TITLE: &str = "The cost of one lock for all local sockets";

const LEAD: &str = "For years FreeBSD took one lock for every message over any local socket, and 96 processes, each with \
                    its own sockets, transferred fewer messages than six. Here each worker writes one byte into its own \
                    pair and reads it, as in will-it-scale's unix1: under one lock that all share (global-lock), through \
                    the pairs of apus, which share none (fine-grained), and through a socket pair of the kernel (unix).";

/// The meaning of the lock figures.
const WAITS: &str = "waits are over all acquisitions; a lock that is free counts as 0 ns. For fine-grained these are the \
                     locks of the pairs: each belongs to one worker, so none should be found taken. The kernel's locks \
                     cannot be observed";

/// A row: a measured curve, and the model that was fitted to it.
struct Contestant<'a> {
    curve: &'a Curve,
    forecast: Option<&'a Forecast>,
}

/// Returns the figures of a row. `one` is with one worker, `most` with the most workers.
fn figures<'a>() -> [RowFigure<Contestant<'a>>; 9] {
    fn last(contestant: &Contestant<'_>, measure: Measure<CrewResult>) -> Option<Figure> {
        contestant.curve.last().runs.figure(measure)
    }
    [
        RowFigure::hidden("workers", |it| Some(Figure::Detail(points(it.curve)))),
        RowFigure::shown("one_kops", |it| it.curve.first().runs.figure(KOPS)),
        RowFigure::shown("most_kops", |it| last(it, KOPS)),
        RowFigure::shown("scaling", |it| it.curve.scaling().map(Figure::Spread)),
        RowFigure::shown("wait_ns", |it| last(it, WAIT_MEAN)),
        RowFigure::shown("wait_p99_ns", |it| last(it, WAIT_P99)),
        RowFigure::shown("found_taken", |it| last(it, TAKEN)),
        RowFigure::hidden("hold_ns", |it| last(it, HOLD)),
        RowFigure::hidden("model", |it| it.forecast?.json(it.curve.contender).map(Figure::Detail)),
    ]
}

/// The number of workers that a ratio is taken at.
#[derive(Clone, Copy)]
enum At {
    One,
    Most,
}

/// A contender at a number of workers.
type Operand = (Contender, At);

/// The ratios of rates: name, dividend, divisor.
const RATIOS: [(&str, Operand, Operand); 7] = {
    use At::{Most, One};
    use Contender::{FineGrained, GlobalLock, Unix};
    [
        ("fine-grained/global-lock", (FineGrained, Most), (GlobalLock, Most)),
        ("fine-grained/unix", (FineGrained, Most), (Unix, Most)),
        ("fine-grained/global-lock@one", (FineGrained, One), (GlobalLock, One)),
        ("fine-grained/unix@one", (FineGrained, One), (Unix, One)),
        ("global-lock@max/one", (GlobalLock, Most), (GlobalLock, One)),
        ("fine-grained@max/one", (FineGrained, Most), (FineGrained, One)),
        ("unix@max/one", (Unix, Most), (Unix, One)),
    ]
};

/// Returns the result, for people and machines.
pub(super) fn findings(options: &ContentionOptions, curves: &[Curve], cores: usize) -> Findings {
    let kinds = options.tasks.each();
    // The row names of the contract are for processes, unless only threads were measured.
    let plain = kinds[0];
    let forecasts: Vec<Forecast> =
        kinds.iter().filter_map(|tasks| Forecast::of(*tasks, curves, cores)).collect();
    let groups = || kinds.iter().map(|tasks| TaskCurves { curves, tasks: *tasks });
    let forecast = |tasks| forecasts.iter().find(|forecast| forecast.tasks == tasks);
    let contestants: Vec<Contestant<'_>> =
        curves.iter().map(|curve| Contestant { curve, forecast: forecast(curve.tasks) }).collect();
    let named = contestants.iter().map(|it| (name(it.curve.contender, it.curve.tasks, plain), it));
    let rates = groups().flat_map(|group| group.by_workers());
    Declaration {
        published: PUBLISHED.iter().map(published).collect(),
        quotients: groups().flat_map(|group| group.quotients(plain)).collect(),
        comparisons: groups().flat_map(|group| group.comparisons()).collect(),
        notes: [WAITS.to_owned()].into_iter().chain(crowded(options, cores)).collect(),
        plots: plots(curves, &forecasts),
        sentences: sentences(curves, &forecasts),
        tables: rates.chain(forecasts.iter().map(ahead)).collect(),
        ..Declaration::new("lab contention", TITLE, LEAD, &figures())
    }
    .findings(options, named)
}

/// Returns the note for workers that share cores.
fn crowded(options: &ContentionOptions, cores: usize) -> Option<String> {
    let workers = options.workers;
    (workers > cores).then(|| {
        format!(
            "there are {cores} cores for up to {workers} workers: some share a core, and a worker that is preempted while \
             it holds a lock blocks all others; the model is fitted to points of at most {cores} workers"
        )
    })
}

/// Returns the suffix of row and ratio names.
fn suffix(tasks: Tasks, plain: Tasks) -> String {
    if tasks == plain { String::new() } else { format!(" {tasks}") }
}

/// Returns the name of the row of a contender.
pub(super) fn name(contender: Contender, tasks: Tasks, plain: Tasks) -> String {
    format!("{contender}{}", suffix(tasks, plain))
}

/// Returns all points of a curve as JSON.
fn points(curve: &Curve) -> serde_json::Value {
    let medians = [
        ("wait_ns", WAIT_MEAN),
        ("wait_p99_ns", WAIT_P99),
        ("found_taken", TAKEN),
        ("hold_ns", HOLD),
    ];
    let point = |point: &SeriesPoint<CrewResult>| {
        point.runs.json(json!({ "n": point.key }), ("kops", KOPS), &medians)
    };
    curve.series.points.iter().map(point).collect()
}

/// Returns the row of a published curve.
fn published(published: &PublishedCurve) -> Row {
    let ((_, one), (most, rate)) = (published.first(), published.last());
    let point = |(n, rate): &(f64, f64)| json!({ "n": *n as u64, "kops": rounded(rate / 1e3) });
    Row::new(&format!("published: {} (1 and {most})", published.name))
        .with("workers", Figure::Detail(published.points.iter().map(point).collect()))
        .with("published", Figure::Detail(json!(true)))
        .with("one_kops", figure(one / 1e3))
        .with("most_kops", figure(rate / 1e3))
        .with("scaling", figure(rate / one))
}

/// The curves of processes, or of threads.
struct TaskCurves<'a> {
    curves: &'a [Curve],
    tasks: Tasks,
}

impl<'a> TaskCurves<'a> {
    fn get(&self, contender: Contender) -> Option<&'a Curve> {
        self.curves.iter().find(|it| it.tasks == self.tasks && it.contender == contender)
    }

    /// Returns the [`RATIOS`] whose curves exist. With one worker only, none is taken between
    /// numbers of workers.
    fn quotients(&self, plain: Tasks) -> Vec<Quotient> {
        let point = |(contender, at)| {
            let curve = self.get(contender)?;
            Some(if matches!(at, At::One) { curve.first() } else { curve.last() })
        };
        let quotient = |(name, of, against): (&str, Operand, Operand)| {
            let (dividend, divisor) = (point(of)?, point(against)?);
            let is_trivial = of.0 == against.0 && dividend.key == divisor.key;
            (!is_trivial).then(|| Quotient {
                name: format!("{name}{}", suffix(self.tasks, plain)),
                dividend: dividend.runs.by_run(KOPS),
                divisor: divisor.runs.by_run(KOPS),
            })
        };
        RATIOS.into_iter().filter_map(quotient).collect()
    }

    /// Returns the comparisons of fine-grained with the global lock, with the most workers and with
    /// one.
    fn comparisons(&self) -> Vec<Comparison> {
        let pair = self.get(Contender::FineGrained).zip(self.get(Contender::GlobalLock));
        let Some((fine, global)) = pair else { return Vec::new() };
        let mut workers = vec![fine.last().key, 1];
        workers.dedup();
        let compare = |workers: usize| {
            let kops = |curve: &Curve| {
                let runs = curve.series.get(workers)?.runs.by_run(KOPS);
                Some(runs.into_iter().map(|(_, kops)| kops).collect::<Vec<_>>())
            };
            let figure = format!("kops with {}", count(workers, self.tasks));
            let [of, against] = [fine, global].map(|curve| curve.contender.to_string());
            let (of, against) = ((&of[..], &kops(fine)?[..]), (&against[..], &kops(global)?[..]));
            Some(Comparison::between(&figure, of, against))
        };
        workers.into_iter().filter_map(compare).collect()
    }

    /// Returns the tables of rates and of waits by the number of workers.
    fn by_workers(&self) -> Vec<Table> {
        type Cell<'c> = &'c dyn Fn(&SeriesPoint<CrewResult>) -> String;
        let tasks = self.tasks;
        let curves: Vec<&Curve> = self.curves.iter().filter(|curve| curve.tasks == tasks).collect();
        if curves.is_empty() {
            return Vec::new();
        }
        let corner = tasks.to_string();
        let label = |points: &[&SeriesPoint<CrewResult>]| points[0].key.to_string();
        let rate: Cell<'_> =
            &|point| point.runs.spread(KOPS).as_ref().map_or_else(String::new, spread_in_words);
        let [wait, p99, taken]: [Cell<'_>; 3] = [
            &|point| point.runs.median(WAIT_MEAN).map_or_else(String::new, short),
            &|point| point.runs.median(WAIT_P99).map_or_else(String::new, short),
            &|point| point.runs.median(TAKEN).map_or_else(String::new, short),
        ];
        let rates: Vec<series::Column<'_, _>> =
            curves.iter().map(|it| (it.contender.to_string(), &it.series, rate)).collect();
        let visible = curves.iter().filter(|curve| curve.contender != Contender::Unix);
        let waits: Vec<series::Column<'_, _>> = visible
            .flat_map(|curve| {
                [("wait", wait), ("p99", p99), ("taken", taken)].map(|(what, cell)| {
                    (format!("{} {what}", curve.contender), &curve.series, cell)
                })
            })
            .collect();
        vec![
            series::table(
                format!("thousands of operations per second, by the number of {tasks}"),
                &corner,
                &rates,
                label,
            ),
            series::table(
                format!(
                    "lock waits in nanoseconds (mean, p99), and the share of locks that were found taken, by the number \
                     of {tasks}"
                ),
                &corner,
                &waits,
                label,
            ),
        ]
    }
}

/// Returns the model.
fn ahead(forecast: &Forecast) -> Table {
    let tasks = forecast.tasks.to_string();
    let published = |workers: usize| {
        let rates = freebsd().into_iter().map(move |it| it.at(workers as f64));
        rates.map(|rate| rate.map_or_else(String::new, |rate| short(rate / 1e3)))
    };
    let line = |at: &Ahead| {
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
        &tasks[..],
        "model: global-lock",
        "model: wait ns",
        "model: fine-grained",
        "model: ratio",
        "FreeBSD before",
        "FreeBSD after",
    ];
    let title = format!(
        "a model, not measured: thousands of operations per second by the number of {tasks} with a core each, and \
         FreeBSD's measurements"
    );
    Table::new(title, header, forecast.points.iter().map(line).collect())
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
        let options = ContentionOptions { workers: 2, runs: 3, ..ContentionOptions::default() };
        let mut findings = super::findings(&options, &curves(), 2);
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
        let (tasks, options) = (Tasks::Threads, ContentionOptions::default());
        let options = ContentionOptions { workers: 2, tasks, runs: 3, ..options };
        let found = super::findings(&options, &curves, 2).outcome;
        let names: Vec<&str> = found.rows.iter().map(|row| &row.name[..]).take(3).collect();
        assert_eq!(names, ["global-lock", "fine-grained", "unix"]);
        assert!(found.ratios.iter().any(|(name, _)| name == "fine-grained/global-lock"));
    }

    #[test]
    fn workers_that_share_cores_are_noted() {
        let notes = |workers| {
            let options = ContentionOptions { workers, ..ContentionOptions::default() };
            super::findings(&options, &made_up::curves(), 2).outcome.notes.join(" ")
        };
        assert!(notes(3).contains("there are 2 cores for up to 3 workers"));
        assert!(!notes(2).contains("there are"));
    }
}
