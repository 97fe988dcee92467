//! Which settings suit this host, and how is that known?
//!
//! One setting after the other: all of its values take turns in each round, over the experiments of [`apus_bench::contest`],
//! and are held against the value that is in force, pair by pair inside the round. A value is taken if it is proven to be better for
//! a goal and not proven to be worse for any, of several the one that costs least; from then on the rest is tried with it. The outcome is a file for
//! [`apus::Settings`] with the evidence in its comments.
//!
//! # Invariants
//!
//! - **T1** Nothing is recommended without a proof (95 % for all values of a setting together, paired), or that gains less
//!   than 2 %: then what is in force stays.
//! - **T2** It takes no longer than was asked for, but for the round that is under way. What could not be tried in time is said.

mod evidence;
mod file;
mod options;
mod search;
mod setting;

pub use evidence::{Candidate, Decision, Effect};
pub use options::{Goal, Options};

use std::fmt;

use ::apus::Settings;
use serde_json::{Value, json};

use apus_report::result::{Figure, Outcome, Row, Table};
use apus_report::stats::Paired;
use apus_testbed::error::Error;
use apus_testbed::machine::{BackgroundLoad, Cores};
use apus_testbed::process::Spawner;

/// What is recommended, and why.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The same for machines: a row for each value that was tried.
    pub outcome: Outcome,
    /// What is recommended.
    pub settings: Settings,
    /// Each setting that was tried.
    pub decisions: Vec<Decision>,
    /// What the file that says so begins with.
    preamble: Vec<String>,
}

/// Tries settings.
///
/// # Errors
///
/// An option does not fit, or nothing at all could be measured in the time.
pub fn run(options: &Options, host: &Spawner) -> Result<Findings, Error> {
    options.check()?;
    let neighbours = BackgroundLoad::watch();
    let cores = Cores::choose();
    let mut outcome = Outcome::new("tune", options.config());
    let found = search::run(options, host, cores);
    if found.decisions.is_empty() {
        let problem =
            format!("nothing could be tried in the time; try more ({})", found.notes.join("; "));
        return Err(Error::Option { option: "seconds", problem });
    }
    outcome.notes = found.notes;
    outcome.notes.push(
        "both sides ran on this host, over UDP and its loopback interface: what depends on the network between hosts is \
         found out with `apus bench sweep --launch ssh`"
            .to_owned(),
    );
    outcome.notes.extend(cores.note());
    outcome.notes.extend(neighbours.note());
    outcome.rows = found.decisions.iter().flat_map(rows).collect();
    outcome.config.insert("recommended".to_owned(), json!({ "toml": found.settings.toml() }));
    let preamble = file::preamble(options, &outcome);
    Ok(Findings { outcome, settings: found.settings, decisions: found.decisions, preamble })
}

/// A row for each value of a setting.
fn rows(decision: &Decision) -> Vec<Row> {
    let row = |candidate: &Candidate| {
        let name = format!("{}={}", decision.setting, candidate.value);
        let row = Row::new(&name)
            .with("setting", Figure::Detail(json!(decision.setting)))
            .with("value", Figure::Detail(json!(candidate.value)))
            .with("taken", Figure::Detail(json!(candidate.value == decision.taken)));
        candidate.effects.iter().fold(row, |row, effect| {
            let row = row.with(effect.figure, Figure::Spread(effect.spread));
            let Some(paired) = effect.paired else { return row };
            row.with(&format!("{}_against", effect.goal), Figure::Detail(against(decision, paired)))
        })
    };
    decision.candidates.iter().map(row).collect()
}

fn against(decision: &Decision, paired: Paired) -> Value {
    let value = apus_report::result::rounded;
    json!({
        "value": decision.before, "ratio": value(paired.ratio), "low": value(paired.low), "high": value(paired.high),
        "proven": paired.is_proven(), "rounds": paired.pairs,
    })
}

impl Findings {
    /// The file that is recommended, with the evidence as comments.
    #[must_use]
    pub fn toml(&self) -> String {
        file::toml(&self.preamble, &self.decisions, &self.settings)
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["setting", "goal", "figure", "against what is in force", ""];
        let header = header.map(str::to_owned).to_vec();
        let lines = self.decisions.iter().flat_map(evidence::lines).collect();
        let table = Table::of_words(header, lines).to_string();
        let changes = self.decisions.iter().filter(|decision| decision.is_a_change());
        let changes: Vec<String> =
            changes.map(|it| format!("{} = {}", it.setting, it.taken)).collect();
        let recommended = match changes.as_slice() {
            [] => "recommended: what is in force; nothing is proven to be better".to_owned(),
            changes => format!("recommended: {}", changes.join(", ")),
        };
        apus_report::result::table::write(&self.outcome, &[], [&table, &recommended], to)
    }
}
