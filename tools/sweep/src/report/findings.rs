//! What did a sweep find out?

use std::fmt;

use apus_report::result::{Figure, Outcome, Row, rounded, table};
use serde_json::{Map, Value, json};

use super::setting::{Contender, Setting, flat};
use super::{page, plots, tables};
use crate::{Done, Record};

/// The result of a sweep: the outcome as every experiment has one, and what is drawn from it.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Rows and settings.
    pub outcome: Outcome,
    /// What was compared.
    pub settings: Vec<Setting>,
}

impl Findings {
    /// What these records say. `done` are those that ran here; the others came from files.
    #[must_use]
    pub fn new(records: &[Record], done: &[Done]) -> Self {
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
        Self { outcome, settings }
    }

    /// A page that shows everything, for a browser; it loads nothing from elsewhere.
    #[must_use]
    pub fn html(&self) -> String {
        page::render(self)
    }

    /// The charts of the page as SVG files: name and content of each.
    #[must_use]
    pub fn svg_files(&self) -> Vec<(String, String)> {
        plots::files(&self.settings)
    }
}

/// Tables for people.
impl fmt::Display for Findings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let details = match &self.settings[..] {
            [] => String::new(),
            [one] => {
                let tables = tables::of_setting(one);
                tables.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n")
            }
            several => tables::overview(several).to_string(),
        };
        table::write(&self.outcome, &[], [&details, ""], formatter)
    }
}

/// What was asked for: a value where all points agree, a list where they do not.
fn config(records: &[Record]) -> Map<String, Value> {
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

/// One contender's row.
fn row(setting: &Setting, contender: &Contender) -> Row {
    let absent = || Figure::Detail(Value::Null);
    let spread = |figure: fn(&crate::Figures) -> f64| Figure::Spread(contender.spread(figure));
    let slowdown = |figure: fn(&crate::Slowdown) -> f64| {
        contender.slowdown(figure).map_or_else(absent, Figure::Spread)
    };
    let sum =
        |figure: fn(&crate::Figures) -> u64| Figure::Count(contender.runs.iter().map(figure).sum());
    let mut row = Row::new(&setting.name_of(contender))
        .with("transport", Figure::Detail(json!(contender.name)))
        .with("small_half_p99_max", slowdown(|of| of.small_half_p99_max))
        .with("mean_by_messages", slowdown(|of| of.mean_by_messages))
        .with("mean_by_bytes", slowdown(|of| of.mean_by_bytes))
        .with("largest_bin_p99", slowdown(|of| of.largest_bin_p99))
        .with("longest_p99", slowdown(|of| of.longest_p99));
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
        .with("achieved_load", spread(|run| run.achieved_load))
        .with("wasted", spread(|run| run.wasted))
        .with("steady", Figure::Detail(json!(contender.is_steady())))
        .with("backlog_growth", spread(|run| run.growth))
        .with("messages", sum(|run| run.messages))
        .with("failed", sum(|run| run.failed))
        .with("packets", sum(|run| run.packets));
    if !contender.speeds.is_empty() {
        let speed = apus_report::stats::Spread::over(&contender.speeds);
        row = row.with("packets_per_second", Figure::Spread(speed));
    }
    let levels: Vec<f64> = (0..8)
        .map(|level| rounded(contender.spread(|run| run.level_shares[level]).median))
        .collect();
    row.with("dropped", sum(|run| run.dropped))
        .with("marked", sum(|run| run.marked))
        .with("simulated_ms", spread(|run| run.simulated_ms))
        .with("level_shares", Figure::Detail(json!(levels)))
        .with(
            "by_size",
            match contender.by_size() {
                bins if bins.is_empty() => absent(),
                bins => Figure::Detail(json!(bins)),
            },
        )
}
