//! The report of the livelock lab, declared: texts, figures, ratios and tables.

use serde_json::{Value, json};

use super::curve::{Curve, FORWARDED, USER_SHARE, typical};
use super::options::LivelockOptions;
use super::plots::plots;
use super::point::RatePoint;
use super::sentences::sentences;
use apus_report::declaration::{Declaration, Quotient, RowFigure};
use apus_report::findings::{Findings, Part, Section};
use apus_report::result::table::spread_in_words;
use apus_report::result::{Figure, Table, rounded, short};
use apus_report::series::{self, SeriesPoint};
use apus_report::stats::Spread;

const TITLE: &str = "The output of a router while its input grows";

const LEAD: &str = "The experiment of J. Mogul and K. Ramakrishnan (“Eliminating Receive Livelock in an \
                    Interrupt-Driven Kernel”, USENIX 1996) on this machine, with real packets: a program on one core \
                    forwards IPv4 between two virtual cables, the other core sends minimum-size UDP packets, and the \
                    kernel counts the arrivals at the far end.";

/// The note for a load in trains.
const PAUSES: &str = "nothing is sent between two trains: the share left to programs includes these pauses, rates do not";

/// The figures of a row. `max` is the highest rate.
const FIGURES: &[RowFigure<Curve>] = &[
    RowFigure::hidden("curve", |curve| Some(Figure::Detail(points(curve)))),
    RowFigure::shown("mlfrr_kpps", |curve| single(curve.loss_free / 1e3)),
    RowFigure::shown("peak_kpps", |curve| Some(Figure::Spread(curve.peak()))),
    RowFigure::shown("at_max_kpps", |curve| Some(Figure::Spread(curve.at_most(FORWARDED)))),
    RowFigure::shown("least_after_peak", |curve| single(curve.least_after_peak()?)),
    RowFigure::shown("user_share_at_max", |curve| Some(Figure::Spread(curve.at_most(USER_SHARE)))),
];

/// Returns the result, for people and machines.
pub(super) fn findings(options: &LivelockOptions, curves: &[Curve]) -> Findings {
    let modes = options.modes.iter().map(|mode| (mode.to_string(), mode.words())).collect();
    let by_rate = [false, true].into_iter().filter_map(|filter| by_rate(curves, filter));
    Declaration {
        quotients: curves.iter().map(at_max_by_peak).collect(),
        notes: options.train.map(|_| PAUSES.to_owned()).into_iter().collect(),
        opening: vec![Section::new("The modes of the router").on_page().with(Part::Pairs(modes))],
        plots: plots(curves),
        sentences: sentences(curves),
        tables: by_rate.collect(),
        closing: vec![Section::new("").on_page().with(rates(curves))],
        ..Declaration::new("livelock", TITLE, LEAD, FIGURES)
    }
    .findings(options, curves.iter().map(|curve| (curve.case.to_string(), curve)))
}

/// Returns the quotient of the output at the highest rate and the peak.
fn at_max_by_peak(curve: &Curve) -> Quotient {
    Quotient {
        name: format!("{}@max/peak", curve.case),
        dividend: curve.series.last().runs.by_run(FORWARDED),
        divisor: curve.series.peaks(FORWARDED),
    }
}

/// Returns a figure that has one value for all runs.
fn single(value: f64) -> Option<Figure> {
    Some(Figure::Spread(Spread::over(&[value])))
}

/// Returns the points as JSON, with the counters of the run of the median.
fn points(curve: &Curve) -> Value {
    let point = |point: &SeriesPoint<RatePoint>| {
        let median = typical(point);
        let offered = json!({ "offered_kpps": rounded(median.offered / 1e3) });
        let shares = [("user_share", USER_SHARE)];
        let mut value = point.runs.json(offered, ("forwarded_kpps", FORWARDED), &shares);
        value["packets"] = json!(median.packets);
        value["counters"] = json!(median.counters);
        if let Some(seen) = median.seen {
            value["monitor_share"] = json!(rounded(seen as f64 / median.packets.max(1) as f64));
        }
        value
    };
    curve.series.points.iter().map(point).collect()
}

/// Returns the table of the main figures of each mode.
fn rates(curves: &[Curve]) -> Table {
    let header = [
        "",
        "MLFRR",
        "peak",
        "at the highest rate",
        "least after the peak, share of it",
        "share of the core left at the highest rate",
    ];
    let line = |curve: &Curve| {
        let spreads = [curve.peak(), curve.at_most(FORWARDED), curve.at_most(USER_SHARE)];
        let [peak, at_most, left] = spreads.map(|spread| spread_in_words(&spread));
        let least = curve.least_after_peak().map_or_else(|| "–".to_owned(), short);
        vec![curve.case.to_string(), short(curve.loss_free / 1e3), peak, at_most, least, left]
    };
    let title = "output of each mode in thousands of packets per second (MLFRR: the highest rate with an output of \
                 99 %)";
    Table::new(title, header, curves.iter().map(line).collect())
}

/// Returns output by input, with the filter or without: a line for each rate, a column for each
/// mode.
fn by_rate(curves: &[Curve], filter: bool) -> Option<Table> {
    let output = |point: &SeriesPoint<RatePoint>| short(typical(point).forwarded / 1e3);
    let curves = curves.iter().filter(|curve| curve.case.filter == filter);
    let columns: Vec<series::Column<'_, RatePoint>> = curves
        .map(|curve| (curve.case.mode.to_string(), &curve.series, &output as &dyn Fn(&_) -> _))
        .collect();
    let offered = |points: &[&SeriesPoint<RatePoint>]| {
        let offered: Vec<f64> = points.iter().map(|point| typical(point).offered / 1e3).collect();
        short(Spread::over(&offered).median)
    };
    let with = if filter { "with" } else { "without" };
    let title =
        format!("output by offered rate, in thousands of packets per second, {with} the filter");
    (!columns.is_empty()).then(|| series::table(title, "offered", &columns, offered))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::livelock::curve::made_up::{Made, curve};
    use crate::livelock::mode::Mode;
    use apus_report::findings::read;

    /// Returns three runs of a mode that livelocks, without the filter and with it, and of one that
    /// stays flat.
    fn made_up() -> Findings {
        let runs = |most: [f64; 3]| most.map(|last| vec![Made(1e5, 1e5), Made(1e6, last)]);
        let mut curves = vec![
            curve(Mode::Interrupt, false, &runs([9e3, 1e4, 12e3])),
            curve(Mode::Apus, false, &runs([2e5, 2.1e5, 1.9e5])),
            curve(Mode::Interrupt, true, &runs([0.0, 0.0, 0.0])),
        ];
        curves[2].loss_free = 0.0;
        let modes = vec![Mode::Interrupt, Mode::Apus];
        let options = LivelockOptions { modes, runs: 3, ..LivelockOptions::default() };
        let mut findings = findings(&options, &curves);
        findings.outcome.notes.push("others were busy".to_owned());
        findings
    }

    #[test]
    fn machines_read_every_curve_with_its_counters() {
        let parts = ["config", "rows", "ratios", "notes"];
        insta::assert_snapshot!(read::json(&made_up(), &parts));
    }

    #[test]
    fn people_read_tables_and_sentences() {
        insta::assert_snapshot!(read::text(&made_up()));
    }

    #[test]
    fn the_page_has_all_of_it() {
        let findings = made_up();
        let page = read::page(&findings);
        for expected in ["MLFRR", "<td>interrupt+filter</td><td>0.000</td>", "others were busy"] {
            assert!(page.contains(expected), "{expected}");
        }
        assert!(page.contains("input preempts everything else"), "the meaning of each mode");
        assert!(page.contains(&findings.outcome.machine.kernel), "the machine");
        let files: Vec<String> = findings.svg_files().into_iter().map(|(name, _)| name).collect();
        let (plain, filter) = (
            ["livelock.svg", "livelock-1996.svg"],
            ["livelock-filter.svg", "livelock-filter-1996.svg"],
        );
        let expected = [plain, filter].concat();
        assert_eq!(files, expected);
    }

    #[test]
    fn a_load_in_trains_has_a_note_about_pauses() {
        let notes = |train| {
            let options = LivelockOptions { train, ..LivelockOptions::default() };
            findings(&options, &[]).outcome.notes
        };
        assert_eq!(notes(None), [""; 0]);
        assert!(notes(Some(10_000))[0].contains("includes these pauses"));
    }

    #[test]
    fn a_mode_that_was_not_measured_with_the_filter_has_no_column_there() {
        let sections = made_up().sections;
        let parts = sections.into_iter().filter(|it| !it.page_only).flat_map(|it| it.parts);
        let headers: Vec<_> = parts
            .filter_map(
                |part| if let Part::Table(table) = part { Some(table.header) } else { None },
            )
            .collect();
        assert_eq!(headers, [vec!["offered", "interrupt", "apus"], vec!["offered", "interrupt"]]);
    }
}
