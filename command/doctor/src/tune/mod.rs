//! Tune: finds the best settings for this host by measurement.
//!
//! The search compares one setting at a time. In each round all values of the setting are measured
//! in turn with the exchanges of [`apus_measure`], and compared with the current value in the same
//! round. A value is recommended if it is proven to be better for one goal and not proven to be
//! worse for any. Among several such values, the cheapest is selected, and the search continues
//! with it. The result is a file for [`apus::Settings`] with the evidence in comments. `apus tune`
//! is its command line.
//!
//! # Invariants
//!
//! - **TUNE-1** No value is recommended without proof (95 % for all values of a setting together,
//!   paired), or for a gain below 2 %; the current value is then kept.
//! - **TUNE-2** The search takes no longer than the time limit, except for the round in progress,
//!   and for the first rounds of the first setting. It reports the settings it could not try.

mod config_file;
mod evidence;
mod options;
mod search;
mod setting;

pub use evidence::{Candidate, Decision, Effect};
pub use options::{Goal, TuneOptions};

use std::fmt;

use ::apus::Settings;
use serde_json::{Value, json};

use apus_measure::error::Error;
use apus_measure::machine::Cores;
use apus_measure::process::Spawner;
use apus_report::result::{Figure, Outcome, Row, Table};
use apus_report::stats::Paired;

/// Result of a search.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The result for JSON: one row for each value.
    pub outcome: Outcome,
    /// Recommended settings.
    pub settings: Settings,
    /// Decision about each setting.
    pub decisions: Vec<Decision>,
    /// First lines of the configuration file.
    preamble: Vec<String>,
}

/// Compares settings.
///
/// # Errors
///
/// An option is out of range, or no measurement succeeded.
pub fn run(options: &TuneOptions, spawner: &Spawner) -> Result<Findings, Error> {
    options.check()?;
    let cores = Cores::choose();
    let mut outcome = Outcome::new("tune", options.config());
    let found = search::run(options, spawner, cores)?;
    if found.decisions.is_empty() {
        return Err(Error::Peer(format!(
            "no setting could be measured: {}",
            found.notes.join("; ")
        )));
    }
    outcome.notes = found.notes;
    outcome.notes.push(
        "both sides ran on this host, over UDP and its loopback interface; settings that depend on the network between \
         hosts are compared with `apus-lab bench sweep --launch ssh`"
            .to_owned(),
    );
    outcome.notes.extend(cores.note());
    outcome.rows = found.decisions.iter().flat_map(rows).collect();
    found.repeater.account(&mut outcome)?;
    outcome.config.insert("recommended".to_owned(), json!({ "toml": found.settings.toml() }));
    let preamble = config_file::preamble(options, &outcome);
    Ok(Findings { outcome, settings: found.settings, decisions: found.decisions, preamble })
}

/// Returns a row for each value of a setting.
fn rows(decision: &Decision) -> Vec<Row> {
    let row = |candidate: &Candidate| {
        let name = format!("{}={}", decision.setting, candidate.value);
        let row = Row::new(&name)
            .with("setting", Figure::Detail(json!(decision.setting)))
            .with("value", Figure::Detail(json!(candidate.value)))
            .with("taken", Figure::Detail(json!(candidate.value == decision.recommended)));
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
    /// Returns the recommended configuration file with the evidence as comments.
    #[must_use]
    pub fn toml(&self) -> String {
        config_file::toml(&self.preamble, &self.decisions, &self.settings)
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["setting", "goal", "figure", "relative to the current value", ""];
        let header = header.map(str::to_owned).to_vec();
        let lines = self.decisions.iter().flat_map(evidence::lines).collect();
        let table = Table::of_words(header, lines).to_string();
        let changes = self.decisions.iter().filter(|decision| decision.is_change());
        let changes: Vec<String> =
            changes.map(|it| format!("{} = {}", it.setting, it.recommended)).collect();
        let conclusion = match changes.as_slice() {
            [] => "recommended: the current settings; no other value is proven to be better"
                .to_owned(),
            changes => format!("recommended: {}", changes.join(", ")),
        };
        apus_report::result::table::write(&self.outcome, &[], [&table, &conclusion], to)
    }
}
