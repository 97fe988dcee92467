//! The findings: rows, ratios, and a table per network.

use apus_report::experiment::config;
use apus_report::findings::{Findings, Part, Section};
use apus_report::result::{Figure, Outcome, Ratio, Row, Table, short};
use apus_report::stats::Spread;
use serde_json::json;

use super::measured::Measured;
use super::options::BenchOptions;
use super::stage::Sample;
use super::works::Work;

const TITLE: &str = "What do files cost that are on another machine?";

const LEAD: &str = "Each work is done by each file system in turn; the directories of all servers are in memory. Times of works \
                    that write end when everything is at the server. Seconds depend on the machine, calls do not.";

/// Returns the result, for people and machines.
pub(super) fn found(options: &BenchOptions, measured: &[Measured], notes: Vec<String>) -> Findings {
    let mut outcome = Outcome::new("fs bench", config(options));
    outcome.rows = measured.iter().map(row).collect();
    outcome.ratios = measured.iter().filter_map(|each| ratio(each, measured)).collect();
    outcome.notes = notes;
    let mut rtts: Vec<f64> = Vec::new();
    for each in measured {
        if rtts.last() != Some(&each.rtt) {
            rtts.push(each.rtt);
        }
    }
    let tables = rtts.into_iter().map(|rtt| table(measured, rtt));
    let works = Work::ALL.iter().filter(|work| measured.iter().any(|it| it.work.name == work.name));
    let works = works.map(|work| (work.name.to_owned(), work.about.to_owned())).collect();
    let ratios = (!outcome.ratios.is_empty()).then_some(Part::Ratios);
    Findings::new(outcome, TITLE, LEAD)
        .with_columns(&[])
        .with(Section::new("").with_all(tables))
        .with(Section::new("What the works are").with_all([Part::Pairs(works)]).on_page())
        .with(Section::new("Ratios inside each run").with_all(ratios))
}

fn row(measured: &Measured) -> Row {
    let mut row = Row::new(&measured.peer)
        .with("work", Figure::Detail(json!(measured.work.name)))
        .with("rtt_ms", Figure::Detail(json!(measured.rtt)));
    if measured.runs.is_empty() {
        row.missing = measured.failure.clone();
        return row;
    }
    for (name, figure) in FIGURES {
        row = row.with_known(name, spread(measured, figure).map(Figure::Spread));
    }
    row
}

/// A figure of one run, if the work has it.
type Of = fn(&Sample) -> Option<f64>;

/// The figures of a row.
const FIGURES: [(&str, Of); 7] = [
    ("seconds", |sample| Some(sample.seconds)),
    ("per_second", per_second),
    ("mb_per_second", mb_per_second),
    ("p50_us", |sample| Some(sample.latency?.0)),
    ("p99_us", |sample| Some(sample.latency?.1)),
    ("idle_p99_us", |sample| sample.idle_p99),
    ("calls", |sample| Some(sample.calls? as f64)),
];

fn per_second(sample: &Sample) -> Option<f64> {
    Some(sample.operations? as f64 / sample.seconds)
}

fn mb_per_second(sample: &Sample) -> Option<f64> {
    Some(sample.bytes? as f64 / sample.seconds / 1e6)
}

/// Returns a figure over the runs.
fn spread(measured: &Measured, figure: Of) -> Option<Spread> {
    let values: Option<Vec<f64>> = measured.runs.iter().map(|(_, sample)| figure(sample)).collect();
    values.filter(|values| !values.is_empty()).map(|values| Spread::over(&values))
}

/// Returns the time of apus divided by the time of a peer.
fn ratio(measured: &Measured, all: &[Measured]) -> Option<(String, Ratio)> {
    let apus = find(all, measured.rtt, measured.work, "apus")?;
    let seconds = |it: &Measured| -> Vec<(usize, f64)> {
        it.runs.iter().map(|(run, sample)| (*run, sample.seconds)).collect()
    };
    let ratio = Ratio::paired(&seconds(apus), &seconds(measured))?;
    let name = format!("seconds apus/{} {} {}", measured.peer, measured.work.name, measured.rtt);
    (measured.peer != "apus").then_some((name, ratio))
}

fn find<'a>(all: &'a [Measured], rtt: f64, work: &Work, peer: &str) -> Option<&'a Measured> {
    let is_it = |it: &&Measured| {
        it.rtt.to_bits() == rtt.to_bits() && it.work.name == work.name && it.peer == peer
    };
    all.iter().find(is_it)
}

/// Returns the table of a network: seconds of all peers, and further figures of the first peer,
/// which is apus if it takes part.
fn table(all: &[Measured], rtt: f64) -> Table {
    let here = || all.iter().filter(|it| it.rtt.to_bits() == rtt.to_bits());
    let mut peers: Vec<&str> = Vec::new();
    for each in here() {
        if !peers.contains(&&each.peer[..]) {
            peers.push(&each.peer);
        }
    }
    peers.sort_by_key(|peer| *peer != "apus");
    let first = peers.first().copied().unwrap_or_default();
    let mut header = vec!["work".to_owned()];
    header.extend(peers.iter().map(|peer| format!("{peer} s")));
    header.extend(["per s", "MB/s", "p50 us", "p99 us", "idle p99 us", "calls"].map(str::to_owned));
    let works = Work::ALL.iter().filter(|work| here().any(|it| it.work.name == work.name));
    let line = |work: &Work| {
        let mut cells = vec![work.name.to_owned()];
        for peer in &peers {
            cells.push(cell(find(all, rtt, work, peer), FIGURES[0].1));
        }
        let further = FIGURES[1..].iter();
        let first = find(all, rtt, work, first).filter(|it| !it.runs.is_empty());
        cells.extend(further.map(|(_, figure)| cell(first, *figure)));
        cells
    };
    let title = format!("RTT {rtt} ms: seconds of each, and figures of {first}");
    Table::new(title, header, works.map(line).collect())
}

fn cell(measured: Option<&Measured>, figure: Of) -> String {
    match measured {
        Some(measured) if measured.runs.is_empty() => "failed".to_owned(),
        Some(measured) => spread(measured, figure).map(|it| short(it.median)).unwrap_or_default(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_report::findings::read;

    fn measured(rtt: f64, peer: &str, seconds: &[f64], calls: Option<u64>) -> Measured {
        let sample =
            |seconds| Sample { seconds, operations: Some(500), calls, ..Sample::default() };
        let runs = seconds.iter().map(|seconds| sample(*seconds)).enumerate().collect();
        let failure = seconds.is_empty().then(|| "it is gone".to_owned());
        Measured { rtt, work: &Work::ALL[0], peer: peer.to_owned(), runs, failure }
    }

    #[test]
    fn rows_ratios_and_tables_are_those_of_the_contract() {
        let all = [
            measured(0.02, "local", &[0.1, 0.2], None),
            measured(0.02, "apus", &[0.2, 0.8], Some(9)),
            measured(2.3, "apus", &[], None),
            measured(2.3, "sshfs", &[4.0], None),
        ];
        let findings = found(&BenchOptions::default(), &all, vec!["a note".to_owned()]);
        let json: serde_json::Value = serde_json::from_str(&findings.outcome.json()).unwrap();
        assert_eq!(json["experiment"], "fs bench");
        let row = &json["rows"][1];
        assert_eq!(
            (&row["name"], &row["work"], &row["rtt_ms"], &row["calls"], &row["seconds"]),
            (&json!("apus"), &json!("sync-500"), &json!(0.02), &json!(9.0), &json!(0.5))
        );
        assert!(row["per_second"].is_number() && row.get("mb_per_second").is_none(), "{row}");
        assert_eq!(json["rows"][2]["missing"], "it is gone");
        assert_eq!(json["ratios"]["seconds apus/local sync-500 0.02"]["median"], 3.0);
        let text = read::text(&findings);
        assert!(
            text.contains("RTT 0.02 ms") && text.contains("failed") && text.contains("a note"),
            "{text}"
        );
        read::page(&findings);
    }
}
