//! The findings of the livelock lab.

use serde_json::{Value, json};

use super::Options;
use super::curve::Curve;
use super::plots::plots;
use super::words::sentences;
use apus_report::experiment::config;
use apus_report::findings::{Findings, Part, Section};
use apus_report::result::table::spread_in_words;
use apus_report::result::{Figure, Outcome, Ratio, Row, Table, rounded, short};
use apus_report::stats::Spread;

/// The note for a load in trains.
const PAUSES: &str = "nothing is sent between two trains: what is left to programs contains these pauses, rates do not";

/// Returns the result, for people and machines.
pub(super) fn found(options: &Options, curves: &[Curve]) -> Findings {
    let mut outcome = Outcome::new("livelock", config(options));
    outcome.rows = curves.iter().map(row).collect();
    for curve in curves {
        let ratio = Ratio::over(&curve.at_most(), &curve.peaks());
        outcome.ratios.extend(ratio.map(|ratio| (format!("{}@max/peak", curve.case), ratio)));
    }
    outcome.notes.extend(options.train.map(|_| PAUSES.to_owned()));
    let modes = options.modes.iter().map(|mode| (mode.to_string(), mode.words())).collect();
    Findings::new(outcome, TITLE, LEAD)
        .with_columns(&[
            "mlfrr_kpps",
            "peak_kpps",
            "at_max_kpps",
            "least_after_peak",
            "user_share_at_max",
        ])
        .with(Section::new("The modes of the router").on_page().with(Part::Pairs(modes)))
        // Without the filter and with it, as far as that was measured.
        .with_all(
            plots(curves),
            sentences(curves),
            [false, true].into_iter().filter_map(|filter| by_rate(curves, filter)),
        )
        .with(Section::new("").on_page().with(rates(curves)))
}

const TITLE: &str = "What comes out of a router while more and more goes in?";

const LEAD: &str = "The experiment of J. Mogul and K. Ramakrishnan (“Eliminating Receive Livelock in an \
                    Interrupt-Driven Kernel”, USENIX 1996) on this machine, with real packets: a program forwards IPv4 \
                    between two virtual cables on one core, the other core sends shortest UDP packets, and the kernel counts \
                    what arrives at the far end.";

fn row(curve: &Curve) -> Row {
    let kpps = |rates: &[f64]| Figure::Spread(kpps(rates));
    let points: Vec<Value> = (0..curve.medians().len()).map(|rate| point(curve, rate)).collect();
    Row::new(&curve.case.to_string())
        .with("curve", Figure::Detail(json!(points)))
        .with("mlfrr_kpps", single(curve.loss_free / 1e3))
        .with("peak_kpps", kpps(&curve.peaks()))
        .with("at_max_kpps", kpps(&curve.at_most()))
        .with_known("least_after_peak", curve.least_after_peak().map(single))
        .with("user_share_at_max", Figure::Spread(Spread::over(&curve.left_at_most())))
}

/// Returns what has one value, whatever the number of runs.
fn single(value: f64) -> Figure {
    Figure::Spread(Spread::over(&[value]))
}

/// Returns the thousands of packets per second.
fn kpps(rates: &[f64]) -> Spread {
    let rates: Vec<f64> = rates.iter().map(|rate| rate / 1e3).collect();
    Spread::over(&rates)
}

/// Returns what each mode carries.
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
        let spreads =
            [kpps(&curve.peaks()), kpps(&curve.at_most()), Spread::over(&curve.left_at_most())];
        let [peak, at_most, left] = spreads.map(|spread| spread_in_words(&spread));
        let least = curve.least_after_peak().map_or_else(|| "–".to_owned(), short);
        vec![curve.case.to_string(), short(curve.loss_free / 1e3), peak, at_most, least, left]
    };
    let title = "what each mode carries, in thousands of packets per second (MLFRR: the highest rate of which 99 % \
                 comes out)";
    Table::new(title, header, curves.iter().map(line).collect())
}

/// Returns one point, with what became of the packets in the run of the median.
fn point(curve: &Curve, rate: usize) -> Value {
    let median = curve.medians()[rate];
    let outputs: Vec<f64> = curve.runs.iter().map(|run| run[rate].forwarded / 1e3).collect();
    let shares: Vec<f64> = curve.runs.iter().map(|run| run[rate].user_share).collect();
    let output = Spread::over(&outputs);
    let mut value = json!({
        "offered_kpps": rounded(median.offered / 1e3),
        "forwarded_kpps": rounded(output.median),
        "forwarded_kpps_min": rounded(output.min),
        "forwarded_kpps_max": rounded(output.max),
        "user_share": rounded(Spread::over(&shares).median),
        "packets": median.packets,
        "counters": median.counters,
    });
    if let Some(seen) = median.seen {
        value["monitor_share"] = json!(rounded(seen as f64 / median.packets.max(1) as f64));
    }
    value
}

/// Output by input, with the filter or without: a line for each rate, a column for each mode.
fn by_rate(curves: &[Curve], filter: bool) -> Option<Table> {
    let curves: Vec<&Curve> = curves.iter().filter(|curve| curve.case.filter == filter).collect();
    let medians: Vec<_> = curves.iter().map(|curve| curve.medians()).collect();
    let rates = medians.iter().map(Vec::len).max().unwrap_or(0);
    let names = curves.iter().map(|curve| curve.case.mode.to_string());
    let line = |rate: usize| {
        let offered: Vec<f64> =
            medians.iter().filter_map(|each| each.get(rate)).map(|it| it.offered / 1e3).collect();
        let cells = medians.iter().map(|each| {
            each.get(rate).map_or_else(String::new, |point| short(point.forwarded / 1e3))
        });
        [short(Spread::over(&offered).median)].into_iter().chain(cells).collect()
    };
    let with = if filter { "with" } else { "without" };
    let title = format!(
        "thousands of packets per second that come out, by those offered, {with} the filter"
    );
    let header = ["offered".to_owned()].into_iter().chain(names);
    (!curves.is_empty()).then(|| Table::new(title, header, (0..rates).map(line).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::livelock::Mode;
    use crate::livelock::curve::made_up::{Made, curve};
    use apus_report::findings::read;

    /// Returns a mode that livelocks and one that stays flat, without the filter and with it; three runs.
    fn findings() -> Findings {
        let runs = |most: [f64; 3]| most.map(|last| vec![Made(1e5, 1e5), Made(1e6, last)]);
        let mut curves = vec![
            curve(Mode::Interrupt, false, &runs([9e3, 1e4, 12e3])),
            curve(Mode::Apus, false, &runs([2e5, 2.1e5, 1.9e5])),
            curve(Mode::Interrupt, true, &runs([0.0, 0.0, 0.0])),
        ];
        curves[2].loss_free = 0.0;
        let modes = vec![Mode::Interrupt, Mode::Apus];
        let options = Options { modes, runs: 3, ..Options::default() };
        let mut findings = found(&options, &curves);
        findings.outcome.notes.push("others were busy".to_owned());
        findings
    }

    #[test]
    fn machines_read_every_curve_with_its_counters() {
        let parts = ["config", "rows", "ratios", "notes"];
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
        for expected in ["MLFRR", "<td>interrupt+filter</td><td>0.000</td>", "others were busy"] {
            assert!(page.contains(expected), "{expected}");
        }
        assert!(page.contains("input interrupts everything else"), "what each mode does");
        assert!(page.contains(&findings.outcome.machine.kernel), "where it ran");
        let files: Vec<String> = findings.svg_files().into_iter().map(|(name, _)| name).collect();
        let (plain, filter) = (
            ["livelock.svg", "livelock-1996.svg"],
            ["livelock-filter.svg", "livelock-filter-1996.svg"],
        );
        let expected = [plain, filter].concat();
        assert_eq!(files, expected);
    }

    #[test]
    fn with_trains_it_is_said_that_programs_have_the_pauses() {
        let notes = |train| {
            let options = Options { train, ..Options::default() };
            found(&options, &[]).outcome.notes
        };
        assert_eq!(notes(None), [""; 0]);
        assert!(notes(Some(10_000))[0].contains("contains these pauses"));
    }

    #[test]
    fn a_mode_that_was_not_measured_with_the_filter_has_no_column_there() {
        let sections = findings().sections;
        let parts = sections.into_iter().filter(|it| !it.page_only).flat_map(|it| it.parts);
        let headers: Vec<_> = parts
            .filter_map(
                |part| if let Part::Table(table) = part { Some(table.header) } else { None },
            )
            .collect();
        assert_eq!(headers, [vec!["offered", "interrupt", "apus"], vec!["offered", "interrupt"]]);
    }
}
