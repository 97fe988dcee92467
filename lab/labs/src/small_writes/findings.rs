//! The findings of the small-writes lab.

use serde_json::{Value, json};

use super::anatomy::Anatomy;
use super::measurements::{Measured, per_thousand};
use super::plots::plots;
use super::published::{IN_2008, Published};
use super::tally::Tally;
use super::words::{of_variant, sentences};
use super::{Carrier, Options};
use apus_report::experiment::config;
use apus_report::findings::Findings;
use apus_report::result::{Figure, Outcome, Ratio, Row, Table, rounded, short};
use apus_report::stats::Spread;

/// Returns the result, for people and machines.
pub(super) fn found(
    options: &Options,
    measured: &[Measured],
    notes: impl Iterator<Item = String>,
) -> Findings {
    let mut outcome = Outcome::new("small-writes", config(options));
    outcome.rows = measured.iter().map(row).collect();
    let shown = |it: &&Published| measured.iter().any(|each| each.variant.name == it.variant);
    outcome.rows.extend(IN_2008.iter().filter(shown).map(published));
    outcome.ratios = measured.iter().filter_map(|each| ratio(each, measured)).collect();
    outcome.ratios.extend(measured.iter().filter_map(|each| median_ratio(each, measured)));
    outcome.notes.extend(scaled(options, measured));
    outcome.notes.extend(unseen(measured));
    outcome.notes.extend(notes);
    Findings::new(outcome, TITLE, LEAD)
        .with_columns(&["ms_per_1000", "p50_us", "p99_us", "over_30_ms", "exchanges"])
        .with_all(plots(measured), sentences(measured), seen(measured))
}

const TITLE: &str = "What does a short message cost that is written in two pieces?";

const LEAD: &str = "A command of 64 bytes and its echo, one at a time. Written as 4 bytes and 60, as programs do that send \
                    a length and then the content, it takes TCP thousands of times as long: Nagle's algorithm holds the \
                    second piece back until the first is acknowledged, and the delayed ACK holds the acknowledgement back \
                    until there is a reply. The packets were captured on a loopback interface of their own.";

fn row(measured: &Measured) -> Row {
    let runs = &measured.runs;
    Row::new(measured.variant.name)
        .with("ms_per_1000", Figure::Spread(Spread::over(&per_thousand(measured))))
        .with_spread("p50_us", runs, |run| run.latencies.quantile(0.5) as f64 / 1e3)
        .with_spread("p99_us", runs, |run| run.latencies.quantile(0.99) as f64 / 1e3)
        .with_sum("over_30_ms", runs, |run| run.stalled)
        .with_sum("exchanges", runs, |run| run.exchanges)
        .with("explanation", Figure::Detail(explanation(measured)))
}

/// Returns what the packets show, for machines.
fn explanation(measured: &Measured) -> Value {
    let mut value = json!({ "words": of_variant(measured) });
    match &measured.anatomy {
        Err(_) => {
            value["from"] = json!("counters");
            let exchanges: u64 = measured.runs.iter().map(|run| run.exchanges).sum();
            let counted: Option<Vec<_>> = measured.runs.iter().map(|run| run.counted).collect();
            if let Some(counted) = counted.filter(|_| measured.variant.carrier == Carrier::Tcp) {
                let each = |count: u64| json!(rounded(count as f64 / exchanges.max(1) as f64));
                value["packets"] = each(counted.iter().map(|each| each.segments).sum());
                value["delayed_acks"] = each(counted.iter().map(|each| each.delayed_acks).sum());
            }
        }
        Ok(anatomy) => packets(anatomy, &mut value),
    }
    value
}

fn packets(anatomy: &Anatomy, value: &mut Value) {
    let us = |nanoseconds: u64| json!(rounded(nanoseconds as f64 / 1e3));
    value["from"] = json!("packets");
    value["exchanges"] = json!(anatomy.exchanges);
    value["irregular"] = json!(anatomy.irregular);
    value["packets"] = json!(rounded(anatomy.packets));
    value["command_packets"] = json!(rounded(anatomy.command));
    value["reply_packets"] = json!(rounded(anatomy.reply));
    value["bare_packets"] = json!(rounded(anatomy.bare));
    value["to_reply_us"] = us(anatomy.to_reply);
    value["total_us"] = us(anatomy.total);
    let second = anatomy.second.as_ref();
    value["nagle"] = json!(second.is_some_and(super::anatomy::Second::is_held));
    value["delayed_ack"] = json!(second.is_some_and(super::anatomy::Second::is_ack_delayed));
    if let Some(second) = second {
        value["second_after_first_us"] = us(second.after_first);
        value["second_after_ack"] = json!(rounded(second.after_ack));
        if let Some((to_ack, from_ack)) = second.waits {
            value["first_to_ack_us"] = us(to_ack);
            value["ack_to_second_us"] = us(from_ack);
        }
    }
    if let Some(counted) = anatomy.counted {
        let each = counted.delayed_acks as f64 / anatomy.all() as f64;
        value["delayed_acks"] = json!(rounded(each));
    }
}

/// Returns what others measured, to be held against.
fn published(published: &Published) -> Row {
    let value = Figure::Spread(Spread::over(&[published.per_thousand]));
    Row::new(&format!("published 2008: {}", published.variant))
        .with("ms_per_1000", value)
        .with("published", Figure::Detail(json!(true)))
}

/// Returns a variant against the one that is not split.
fn ratio(measured: &Measured, all: &[Measured]) -> Option<(String, Ratio)> {
    against_whole(measured, all, Tally::per_thousand)
}

/// Returns the same of the median exchange, which does not see the few that other programs had delayed: of what is only
/// split.
fn median_ratio(measured: &Measured, all: &[Measured]) -> Option<(String, Ratio)> {
    let median = |run: &Tally| run.latencies.quantile(0.5) as f64;
    let (name, ratio) = against_whole(measured, all, median)?;
    ["tcp split", "apus split"]
        .contains(&measured.variant.name)
        .then(|| (format!("p50 {name}"), ratio))
}

fn against_whole(
    measured: &Measured,
    all: &[Measured],
    of: fn(&Tally) -> f64,
) -> Option<(String, Ratio)> {
    let variant = measured.variant;
    let base = all.iter().find(|each| each.variant.name == variant.base())?;
    let ratio = Ratio::paired(&measured.by_run(of), &base.by_run(of))?;
    (base.variant != variant).then(|| (format!("{variant}/whole"), ratio))
}

/// Returns that a thousand exchanges were not made where they take too long.
fn scaled(options: &Options, measured: &[Measured]) -> Option<String> {
    let few = |each: &&Measured| each.runs.iter().any(|run| run.exchanges < options.exchanges);
    let few: Vec<&str> = measured.iter().filter(few).map(|each| each.variant.name).collect();
    let least = measured.iter().flat_map(|each| &each.runs).map(|run| run.exchanges).min()?;
    let what = format!(
        "times are given for a thousand exchanges, of up to {} in a run",
        options.exchanges
    );
    Some(if few.is_empty() {
        what
    } else {
        format!(
            "{what}; as many as {} s allow, {least} at least, of: {}",
            options.repetition.seconds,
            few.join(", ")
        )
    })
}

/// Returns why packets could not be seen, each reason once.
fn unseen(measured: &[Measured]) -> Vec<String> {
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    for each in measured {
        let Err(why) = &each.anatomy else { continue };
        match notes.iter_mut().find(|(known, _)| known == why) {
            Some((_, names)) => names.push(each.variant.name),
            None => notes.push((why.clone(), vec![each.variant.name])),
        }
    }
    let whole = measured.len();
    let note = |(why, names): (String, Vec<&str>)| {
        let of =
            if names.len() == whole { String::new() } else { format!(" of {}", names.join(", ")) };
        format!("the packets{of} could not be seen: {why}")
    };
    notes.into_iter().map(note).collect()
}

/// Returns what was seen in the packets, side by side.
fn seen(measured: &[Measured]) -> Option<Table> {
    let header = [
        "",
        "packets",
        "command",
        "reply",
        "without payload",
        "second after first us",
        "first to its ACK us",
        "ACK to second us",
        "Nagle",
        "delayed ACK",
    ];
    let line = |each: &Measured| {
        let anatomy = each.anatomy.as_ref().ok()?;
        let us = |nanoseconds: Option<u64>| {
            nanoseconds.map_or_else(String::new, |it| short(it as f64 / 1e3))
        };
        let second = anatomy.second.as_ref();
        // Where hardly any waited, it is not what made the second piece late.
        let waits = second.filter(|second| second.is_held()).and_then(|second| second.waits);
        let of_tcp = |it: bool| match (each.variant.carrier, it) {
            (Carrier::Tcp, true) => "yes".to_owned(),
            (Carrier::Tcp, false) => "no".to_owned(),
            _ => String::new(),
        };
        Some(vec![
            each.variant.name.to_owned(),
            short(anatomy.packets),
            short(anatomy.command),
            short(anatomy.reply),
            short(anatomy.bare),
            us(second.map(|second| second.after_first)),
            us(waits.map(|(to_ack, _)| to_ack)),
            us(waits.map(|(_, from_ack)| from_ack)),
            of_tcp(second.is_some_and(super::anatomy::Second::is_held)),
            of_tcp(second.is_some_and(super::anatomy::Second::is_ack_delayed)),
        ])
    };
    let lines: Vec<Vec<String>> = measured.iter().filter_map(line).collect();
    let title = "packets in an exchange, and who waited for whose acknowledgement (medians)";
    (!lines.is_empty()).then(|| Table::new(title, header, lines))
}

#[cfg(test)]
pub(super) mod sample_findings {
    use super::super::sample_packets::Made::{Client, Server};
    use super::super::sample_packets::{SERVER, apus, stalled, tcp};
    use super::super::tally::{STALL, Tally};
    use super::super::{Variant, Writing};
    use super::*;
    use apus_report::stats::Latencies;

    /// Returns a variant whose runs took these milliseconds for a thousand exchanges; each run has 50 of them.
    pub(in crate::small_writes) fn measured(
        name: &str,
        runs: &[f64],
        anatomy: Result<Anatomy, String>,
    ) -> Measured {
        let tally = |ms: &f64| {
            let each = (ms * 1e3) as u64;
            let mut latencies = Latencies::new();
            (0..50).for_each(|_| latencies.record(each));
            let stalled = if each > STALL { 50 } else { 0 };
            Tally { exchanges: 50, elapsed: 50 * each, latencies, stalled, counted: None }
        };
        let variant = Variant::named(name).unwrap();
        let numbers = (1..=runs.len()).collect();
        Measured { variant, runs: runs.iter().map(tally).collect(), numbers, anatomy }
    }

    /// Returns all variants, in two runs, with what their packets should look like.
    pub(in crate::small_writes) fn all() -> Vec<Measured> {
        let each = |variant: &Variant| {
            let (ms, seen) = match (variant.carrier, variant.writing) {
                (Carrier::Apus, _) => (6.0, apus(4)),
                (_, Writing::Split) => (44_000.0, tcp(&vec![stalled(44_000); 3])),
                (_, Writing::QuickAck) => (25.0, tcp(&vec![stalled(7); 3])),
                (_, Writing::NoDelay) => {
                    (17.0, tcp(&vec![vec![Client(10, 4), Client(3, 60), Server(9, 64)]; 3]))
                }
                _ => (15.0, tcp(&vec![vec![Client(10, 64), Server(9, 64)]; 3])),
            };
            let anatomy = Anatomy::of(&seen, SERVER, 4).unwrap();
            measured(variant.name, &[ms, 1.1 * ms], Ok(anatomy))
        };
        Variant::ALL.iter().map(each).collect()
    }

    pub(in crate::small_writes) fn findings() -> Findings {
        let mut options = Options::default();
        options.repetition.runs = 2;
        found(&options, &all(), ["others were busy".to_owned()].into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::sample_findings::{all, findings};
    use super::*;
    use crate::small_writes::Variant;
    use apus_report::findings::read;

    #[test]
    fn machines_read_every_figure_and_its_explanation() {
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
        let page = findings.html();
        for expected in ["delays its ACK", "Nagle&#x27;s algorithm", "tcp split&#x2f;whole"] {
            assert!(page.contains(expected), "{expected}");
        }
        for plot in findings.plots() {
            assert!(page.contains(&plot.title), "{}", plot.title);
        }
        assert!(
            page.contains("others were busy") && page.contains(&findings.outcome.machine.kernel)
        );
        assert_eq!(findings.svg_files().len(), findings.plots().count());
    }

    #[test]
    fn packets_that_could_not_be_seen_are_told_with_the_reason() {
        let mut measured = all();
        measured[1].anatomy = Err("of 21 exchanges only 7 were seen as a whole".to_owned());
        let of =
            |measured: &[Measured]| found(&Options::default(), measured, [].into_iter()).outcome;
        let notes = of(&measured).notes.join("\n");
        assert!(notes.contains("the packets of tcp split could not be seen: of 21"), "{notes}");
        measured.iter_mut().for_each(|each| each.anatomy = Err("no right".to_owned()));
        let outcome = of(&measured);
        assert_eq!(outcome.notes.iter().filter(|note| note.contains("no right")).count(), 1);
        assert!(outcome.notes.iter().any(|note| note == "the packets could not be seen: no right"));
        let text = found(&Options::default(), &measured, [].into_iter()).to_string();
        assert!(!text.contains("who waited for whose"), "no table of nothing");
    }

    #[test]
    fn what_is_measured_alone_has_no_ratios() {
        let alone =
            &all()[Variant::ALL.iter().position(|it| it.name == "apus split").unwrap()..][..1];
        let outcome = found(&Options::default(), alone, [].into_iter()).outcome;
        assert_eq!((outcome.rows.len(), outcome.ratios.len()), (1, 0));
    }
}
