//! The findings of a sweep.

use apus_report::chart::short_number;
use apus_report::findings::{Findings, Part, Section};
use apus_report::page::Card;
use apus_report::result::{Figure, Outcome, Row, rounded, short};
use serde_json::{Map, Value, json};

use super::reference::Reference;
use super::setting::{Contender, Setting, flat};
use super::{plots, tables};
use crate::{Done, PointRecord, Recovery};

/// Returns the findings of these records. `done` are the points that ran here; the others were read
/// from files.
#[must_use]
pub fn findings(records: &[PointRecord], done: &[Done]) -> Findings {
    let settings = Setting::all(records, done);
    let mut outcome = Outcome::new("sim run", config(records));
    for setting in &settings {
        for contender in &setting.contenders {
            outcome.rows.push(row(setting, contender));
            let name = setting.name_of(contender);
            outcome
                .notes
                .extend(contender.trouble(setting.load()).map(|why| format!("{name}: {why}")));
            let failed: u64 = contender.runs.iter().map(|run| run.failed).sum();
            if failed > 0 {
                outcome.notes.push(format!("{name}: {failed} messages failed"));
            }
        }
    }
    let (lead, values) = (title(&outcome), Part::Pairs(values(&outcome)));
    let several = settings.len() > 1;
    let mut findings = Findings::new(outcome, "How do messages fare in a simulated fabric?", lead)
        .with_columns(&[]);
    if several {
        findings = findings.with(
            Section::new("Overview")
                .with(tables::overview(&settings))
                .with_all(plots::overview(&settings)),
        );
    } else {
        findings.cards = settings.first().map(cards).unwrap_or_default();
    }
    for setting in &settings {
        let section = Section::new(&setting.label[..])
            .with_all(plots::of_setting(setting))
            .with_all(tables::of_setting(setting));
        findings = findings.with(if several { section.on_page() } else { section });
    }
    findings
        .with(
            Section::new("What was simulated")
                .on_page()
                .with(Part::Text(SIMULATED.to_owned()))
                .with(Part::Text(PUBLISHED.to_owned())),
        )
        .with(Section::new("Values of the sweep").on_page().with_all(several.then_some(values)))
}

const SIMULATED: &str = "Hosts that run the protocol unchanged, links, and switches that store and forward with eight \
                         levels of strict priority. Applications hand messages over at random instants (Poisson) whether or \
                         not earlier ones are done. Slowdown is the time from that instant until a message has arrived \
                         completely, divided by the best possible time on an idle fabric. Everything random follows from the \
                         seed: the same options give the same figures on any machine.";

const PUBLISHED: &str = "Published curves: SIGCOMM 2018 (Montazeri, Li, Alizadeh, Ousterhout: Homa), figures 12 and 13 and \
                         table 1.";

/// Returns the subject of the sweep: `w4 at 80 % load, 9x16x4`.
fn title(outcome: &Outcome) -> String {
    let word = |name: &str| outcome.config.get(name).map_or_else(String::new, in_words);
    let load = match outcome.config.get("load").and_then(Value::as_f64) {
        Some(load) => format!("{} %", short_number(100.0 * load)),
        None => word("load"),
    };
    format!("{} at {load} load, {} (racks x hosts x spines)", word("workload"), word("topology"))
}

/// Returns the options that have several values.
fn values(outcome: &Outcome) -> Vec<(String, String)> {
    let several = outcome.config.iter().filter(|(_, value)| value.is_array());
    several.map(|(name, value)| (name.replace('_', " "), in_words(value))).collect()
}

/// Formats a value of the configuration; a list shows all values.
fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(in_words).collect::<Vec<_>>().join(", "),
        value => value.to_string(),
    }
}

/// Returns one card for each contender.
fn cards(setting: &Setting) -> Vec<Card> {
    let reference = Reference::of(setting);
    setting.contenders.iter().enumerate().map(|each| card(each, &reference)).collect()
}

fn card((index, contender): (usize, &Contender), reference: &Reference) -> Card {
    let p99 = contender.slowdown(|of| of.small_half_p99_max);
    let mut more = match contender.slowdown(|of| of.mean_by_bytes) {
        Some(mean) => format!("mean by bytes {}", short(mean.median)),
        None => {
            format!("achieved load {}", short(contender.spread(|run| run.achieved_load).median))
        }
    };
    if let Some(row) = reference.row(&contender.name) {
        let (p99, mean) = (row.summary.small_half_p99_max, row.summary.mean_by_bytes);
        more = format!("{more} ({}: {} and {})", row.scheme, short(p99), short(mean));
    }
    Card {
        name: contender.name.clone(),
        colour: plots::colour(&contender.name, index),
        figure: p99.map_or_else(|| "not steady".to_owned(), |p99| short(p99.median)),
        more: format!("greatest p99 slowdown of the smaller half; {more}"),
    }
}

/// Returns the options: a value where all points agree, a list where they do not.
fn config(records: &[PointRecord]) -> Map<String, Value> {
    let mut lists: Map<String, Value> = Map::new();
    let mut add = |name: &str, value: Value| {
        let list = lists.entry(name).or_insert_with(|| json!([]));
        let list = list.as_array_mut().expect("made above");
        if !list.contains(&value) {
            list.push(value);
        }
    };
    for record in records {
        for (name, value) in flat(&record.config) {
            add(&name, value);
        }
        add("transport", json!(record.transport));
        add("seed", json!(record.seed));
    }
    let runs = lists.get("seed").and_then(Value::as_array).map_or(0, Vec::len);
    let mut config: Map<String, Value> = lists
        .into_iter()
        .map(|(name, list)| match list {
            Value::Array(mut values) if values.len() == 1 || name == "seed" => {
                (name, values.swap_remove(0))
            }
            list => (name, list),
        })
        .collect();
    config.insert("runs".to_owned(), json!(runs));
    config
}

/// Returns one contender's row.
fn row(setting: &Setting, contender: &Contender) -> Row {
    let absent = || Figure::Detail(Value::Null);
    let spread = |values: &[f64]| Figure::Spread(apus_report::stats::Spread::over(values));
    let slowdown = |figure: fn(&crate::Slowdown) -> f64| {
        contender.slowdown(figure).map_or_else(absent, Figure::Spread)
    };
    let runs = &contender.runs;
    let mut row = Row::new(&setting.name_of(contender))
        .with("transport", Figure::Detail(json!(contender.name)))
        .with("small_half_p99_max", slowdown(|of| of.small_half_p99_max))
        .with("mean_by_messages", slowdown(|of| of.mean_by_messages))
        .with("mean_by_bytes", slowdown(|of| of.mean_by_bytes))
        .with("largest_bin_p99", slowdown(|of| of.largest_bin_p99))
        .with("longest_p99", slowdown(|of| of.longest_p99));
    // A workload need not have medium messages.
    if let Some(medium) = contender.medium() {
        row = row.with("medium_p99", Figure::Spread(medium));
    }
    let queues = contender.queues();
    let names = ["tor_spine", "spine_tor", "tor_host"];
    for (index, name) in names.into_iter().enumerate().rev() {
        let both = queues.map(|queues| queues[index]);
        let figure = |value: Option<_>| value.map_or_else(absent, Figure::Spread);
        row = row
            .with(&format!("{name}_queue_kb_mean"), figure(both.map(|both| both.0)))
            .with(&format!("{name}_queue_kb_max"), figure(both.map(|both| both.1)));
    }
    row = row
        .with("offered_load", Figure::Detail(json!(setting.load())))
        .with_spread("achieved_load", runs, |run| run.achieved_load)
        .with_spread("wasted", runs, |run| run.wasted)
        .with("steady", Figure::Detail(json!(contender.is_steady())))
        .with_spread("backlog_growth", runs, |run| run.growth)
        .with_sum("messages", runs, |run| run.messages)
        .with_sum("failed", runs, |run| run.failed)
        .with_sum("packets", runs, |run| run.packets);
    if !contender.speeds.is_empty() {
        let speed = apus_report::stats::Spread::over(&contender.speeds);
        row = row.with("packets_per_second", Figure::Spread(speed));
    }
    let levels: Vec<f64> = (0..8)
        .map(|level| rounded(contender.spread(|run| run.level_shares[level]).median))
        .collect();
    if setting.config.contains_key("stall_ns") {
        // A run that did not recover has no recovery time, and then the setting has none.
        let times: Option<Vec<f64>> = runs.iter().map(|run| run.recovery_ms).collect();
        row = row.with("recovery_ms", times.map_or_else(absent, |times| spread(&times)));
    }
    let busy: Vec<f64> = runs.iter().filter_map(|run| run.processor_load).collect();
    if !busy.is_empty() {
        row = row.with_spread("processor_load", &busy, |share| *share);
    }
    // A transport counts retransmissions in all of its runs or in no run.
    let recoveries: Vec<Recovery> = runs.iter().filter_map(|run| run.recovery).collect();
    if !recoveries.is_empty() {
        row = row
            .with_sum("socket_overflows", &recoveries, |run| run.socket_overflows)
            .with_spread("resent_share", &recoveries, |run| run.resent_share)
            .with_sum("needless_resends", &recoveries, |run| run.needless_resends);
    }
    row.with_sum("dropped", runs, |run| run.dropped)
        .with_sum("marked", runs, |run| run.marked)
        .with_spread("goodput", runs, |run| run.goodput)
        .with_spread("simulated_ms", runs, |run| run.simulated_ms)
        .with("level_shares", Figure::Detail(json!(levels)))
        .with(
            "by_size",
            match contender.by_size() {
                bins if bins.is_empty() => absent(),
                bins => Figure::Detail(json!(bins)),
            },
        )
}
