//! The report of the small-writes lab, declared: texts, figures, ratios and tables.

use serde_json::{Value, json};

use super::anatomy::{Anatomy, Second};
use super::measurements::{Measured, PER_THOUSAND};
use super::options::SmallWritesOptions;
use super::plots::plots;
use super::published::{IN_2008, Published};
use super::sentences::{of_variant, sentences};
use super::tally::Tally;
use super::variant::Carrier;
use apus_report::declaration::{Declaration, Quotient, RowFigure};
use apus_report::findings::Findings;
use apus_report::published::figure;
use apus_report::result::{Figure, Row, Table, rounded, short};
use apus_report::runs::Measure;

const TITLE: &str = "The cost of writing a short message in two pieces";

const LEAD: &str = "A command of 64 bytes and its echo, one at a time. Written as 4 bytes and 60, by programs that send a \
                    length and then the content, it takes TCP thousands of times as long: Nagle's algorithm holds the \
                    second piece back until the first is acknowledged, and the delayed ACK holds the acknowledgement back \
                    until there is a reply. The packets were captured on a separate loopback interface.";

/// The figures of a row.
const FIGURES: &[RowFigure<Measured>] = &[
    RowFigure::shown("ms_per_1000", |it| it.runs.figure(PER_THOUSAND)),
    RowFigure::shown("p50_us", |it| it.runs.figure(|run| Some(run.quantile_us(0.5)))),
    RowFigure::shown("p99_us", |it| it.runs.figure(|run| Some(run.quantile_us(0.99)))),
    RowFigure::shown("over_30_ms", |it| Some(it.runs.sum(|run| run.stalled))),
    RowFigure::shown("exchanges", |it| Some(it.runs.sum(|run| run.exchanges))),
    RowFigure::hidden("explanation", |it| Some(Figure::Detail(explanation(it)))),
];

/// The variants whose median exchanges have a ratio as well: it ignores the few exchanges that
/// other programs delayed.
const WITH_MEDIAN_RATIO: [&str; 2] = ["tcp split", "apus split"];

/// Returns the result, for people and machines.
pub(super) fn findings(
    options: &SmallWritesOptions,
    measured: &[Measured],
    notes: impl Iterator<Item = String>,
) -> Findings {
    let is_measured = |it: &&Published| measured.iter().any(|each| each.variant.name == it.variant);
    let median: Measure<Tally> = |run| Some(run.quantile_us(0.5));
    let medians = measured.iter().filter(|it| WITH_MEDIAN_RATIO.contains(&it.variant.name));
    let by_whole = measured.iter().filter_map(|it| by_whole("", it, measured, PER_THOUSAND));
    let medians = medians.filter_map(|it| self::by_whole("p50 ", it, measured, median));
    Declaration {
        published: IN_2008.iter().filter(is_measured).map(published).collect(),
        quotients: by_whole.chain(medians).collect(),
        notes: scaled(options, measured).into_iter().chain(unseen(measured)).chain(notes).collect(),
        plots: plots(measured),
        sentences: sentences(measured),
        tables: packets_table(measured).into_iter().collect(),
        ..Declaration::new("small-writes", TITLE, LEAD, FIGURES)
    }
    .findings(options, measured.iter().map(|it| (it.variant.name.to_owned(), it)))
}

/// Returns the quotient of a variant and the variant that splits nothing.
fn by_whole(
    prefix: &str,
    measured: &Measured,
    all: &[Measured],
    measure: Measure<Tally>,
) -> Option<Quotient> {
    let variant = measured.variant;
    let base = all.iter().find(|each| each.variant.name == variant.base())?;
    (base.variant != variant).then(|| Quotient {
        name: format!("{prefix}{variant}/whole"),
        dividend: measured.runs.by_run(measure),
        divisor: base.runs.by_run(measure),
    })
}

/// Returns the content of the packets, for machines.
fn explanation(measured: &Measured) -> Value {
    let mut value = json!({ "words": of_variant(measured) });
    match &measured.anatomy {
        Err(_) => {
            value["from"] = json!("counters");
            if let Some((segments, delayed_acks)) = measured.counted() {
                value["packets"] = json!(rounded(segments));
                value["delayed_acks"] = json!(rounded(delayed_acks));
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
    value["nagle"] = json!(second.is_some_and(Second::is_held));
    value["delayed_ack"] = json!(second.is_some_and(Second::is_ack_delayed));
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

/// Returns the row of a published figure.
fn published(published: &Published) -> Row {
    Row::new(&format!("published 2008: {}", published.variant))
        .with("ms_per_1000", figure(published.per_thousand))
        .with("published", Figure::Detail(json!(true)))
}

/// Returns the note about the number of exchanges; slow variants make fewer.
fn scaled(options: &SmallWritesOptions, measured: &[Measured]) -> Option<String> {
    let exchanges = |each: &Measured| each.runs.results().map(|run| run.exchanges).min();
    let few = |each: &&Measured| exchanges(each).is_some_and(|least| least < options.exchanges);
    let few: Vec<&str> = measured.iter().filter(few).map(|each| each.variant.name).collect();
    let least = measured.iter().filter_map(exchanges).min()?;
    let text =
        format!("times are per thousand exchanges, with up to {} in a run", options.exchanges);
    Some(if few.is_empty() {
        text
    } else {
        format!(
            "{text}; {} s allowed fewer, at least {least}, for: {}",
            options.repetition.seconds,
            few.join(", ")
        )
    })
}

/// Returns why packets could not be captured, each reason once.
fn unseen(measured: &[Measured]) -> Vec<String> {
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    for each in measured {
        let Err(why) = &each.anatomy else { continue };
        match notes.iter_mut().find(|(known, _)| known == why) {
            Some((_, names)) => names.push(each.variant.name),
            None => notes.push((why.clone(), vec![each.variant.name])),
        }
    }
    let all = measured.len();
    let note = |(why, names): (String, Vec<&str>)| {
        let of =
            if names.len() == all { String::new() } else { format!(" of {}", names.join(", ")) };
        format!("the packets{of} could not be captured: {why}")
    };
    notes.into_iter().map(note).collect()
}

/// Returns the table of the captured packets.
fn packets_table(measured: &[Measured]) -> Option<Table> {
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
        // If hardly any second piece waited for an ACK, the wait is not what delayed it.
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
            of_tcp(second.is_some_and(Second::is_held)),
            of_tcp(second.is_some_and(Second::is_ack_delayed)),
        ])
    };
    let lines: Vec<Vec<String>> = measured.iter().filter_map(line).collect();
    let title = "packets of an exchange, and waits for acknowledgements (medians)";
    (!lines.is_empty()).then(|| Table::new(title, header, lines))
}

#[cfg(test)]
pub(super) mod sample_findings {
    use super::super::sample_packets::Made::{Client, Server};
    use super::super::sample_packets::{SERVER, apus, stalled, tcp};
    use super::super::tally::{STALL, Tally};
    use super::super::variant::{Variant, Writing};
    use super::*;
    use apus_report::stats::Latencies;

    /// Returns a variant whose runs took these milliseconds per thousand exchanges; each run has 50
    /// exchanges.
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
        Measured { variant, runs: (1..).zip(runs.iter().map(tally)).collect(), anatomy }
    }

    /// Returns two runs of all variants, with the packets to be expected.
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
        let mut options = SmallWritesOptions::default();
        options.repetition.runs = 2;
        super::findings(&options, &all(), ["others were busy".to_owned()].into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::sample_findings::{all, findings};
    use super::*;
    use crate::small_writes::variant::Variant;
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
    fn packets_that_could_not_be_captured_have_a_note_with_the_reason() {
        let mut measured = all();
        measured[1].anatomy = Err("of 21 exchanges only 7 were seen as a whole".to_owned());
        let of = |measured: &[Measured]| {
            super::findings(&SmallWritesOptions::default(), measured, [].into_iter())
        };
        let notes = of(&measured).outcome.notes.join("\n");
        assert!(notes.contains("the packets of tcp split could not be captured: of 21"), "{notes}");
        measured.iter_mut().for_each(|each| each.anatomy = Err("no right".to_owned()));
        let findings = of(&measured);
        let notes = findings.outcome.notes.iter().filter(|note| note.contains("no right"));
        let notes: Vec<&String> = notes.collect();
        assert_eq!(notes, ["the packets could not be captured: no right"]);
        assert!(!findings.to_string().contains("waits for acknowledgements"), "no empty table");
    }

    #[test]
    fn a_single_variant_has_no_ratios() {
        let alone =
            &all()[Variant::ALL.iter().position(|it| it.name == "apus split").unwrap()..][..1];
        let options = SmallWritesOptions::default();
        let outcome = super::findings(&options, alone, [].into_iter()).outcome;
        assert_eq!((outcome.rows.len(), outcome.ratios.len()), (1, 0));
    }
}
