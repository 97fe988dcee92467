//! Path `loopback`: round trip and rate of apus and TCP between two processes of this machine.

use serde_json::{Map, Value, json};

use super::options::DemoOptions;
use crate::contest::{self, Contest, RATE, RTT};
use crate::slowdown::OURS;
use apus_report::experiment::config;
use apus_report::findings::Findings;
use apus_report::result::{Outcome, Phases, Ratio, Row};
use apus_testbed::error::Error;
use apus_testbed::process::Spawner;

/// The transports.
const TRANSPORTS: [&str; 2] = [OURS, "tcp"];

/// Maximum counted time of each transport in each run. Chosen by us: this is an addition to the
/// simulator.
const MOST_SECONDS: f64 = 0.5;

/// Results over loopback.
pub(super) struct Measured {
    /// One row for each transport.
    rows: Vec<Row>,
    ratios: Vec<(String, Ratio)>,
    notes: Vec<String>,
    /// Record of the measurements.
    phases: Phases,
}

/// Measures the round trip of one request at a time, and the rate of many concurrent small
/// requests.
pub(super) fn run(options: &DemoOptions, host: &Spawner) -> Result<Measured, Error> {
    let rtt = contest(&RTT, options, host)?;
    let rate = contest(&RATE, options, host)?;
    let figures = [(&rtt, &["p50_us", "p99_us"][..]), (&rate, &["krps"][..])];
    let row = |name: &&str| {
        let mut row = Row::new(name);
        let mut missing = None;
        for (outcome, wanted) in figures {
            let found = outcome.rows.iter().find(|row| row.name == *name);
            missing = missing.or_else(|| found?.missing.clone());
            for figure in found.into_iter().flat_map(|row| &row.figures) {
                row.figures.extend(wanted.contains(&&*figure.0).then(|| figure.clone()));
            }
        }
        // A row with one of the two measurements counts as a result; a note names the missing one.
        row.missing = missing.filter(|_| row.figures.is_empty());
        row
    };
    let ratios = [("p50_us", &rtt), ("krps", &rate)].into_iter().flat_map(|(figure, outcome)| {
        let named = move |(name, ratio): &(String, Ratio)| (format!("{figure} {name}"), *ratio);
        outcome.ratios.iter().map(named)
    });
    let ratios = ratios.collect();
    let rows = TRANSPORTS.iter().map(row).collect();
    let mut phases = rtt.phases.clone().unwrap_or_default();
    phases.extend(rate.phases.clone().unwrap_or_default());
    let about = |what: &'static str, notes: Vec<String>| {
        notes.into_iter().map(move |note| format!("{what} over loopback: {note}"))
    };
    let notes = about("round trips", rtt.notes).chain(about("rate", rate.notes)).collect();
    Ok(Measured { rows, ratios, notes, phases })
}

fn contest(contest: &Contest, options: &DemoOptions, host: &Spawner) -> Result<Outcome, Error> {
    let defaults = (contest.defaults)();
    let mut repetition = options.repetition(&defaults.repetition);
    repetition.seconds = repetition.seconds.min(MOST_SECONDS);
    let only = TRANSPORTS.map(str::to_owned).to_vec();
    let options = contest::ContestOptions { repetition, only, ..defaults };
    Ok(contest.run(&options, host)?.outcome)
}

impl Measured {
    /// Returns the member of the JSON object.
    pub(super) fn json(&self) -> Value {
        let ratios: Map<String, Value> =
            self.ratios.iter().map(|(name, ratio)| (name.clone(), json!(ratio))).collect();
        json!({ "rows": self.rows, "ratios": ratios })
    }

    /// Returns the rows.
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the record of the measurements.
    pub(super) const fn phases(&self) -> &Phases {
        &self.phases
    }

    /// Returns reservations about the figures.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns findings that consist of this.
    pub(super) fn findings(self, options: &DemoOptions) -> Findings {
        let loopback = self.json();
        let mut outcome = Outcome::new("demo", config(options));
        outcome.members.insert("loopback".to_owned(), loopback);
        outcome.phases = Some(self.phases);
        (outcome.rows, outcome.ratios, outcome.notes) = (self.rows, self.ratios, self.notes);
        let lead = "Round trip of one request of 100 bytes at a time, and rate of many of them.";
        Findings::new(outcome, "How fast are small requests on an idle machine?", lead).with_all(
            Vec::new(),
            Vec::new(),
            [],
        )
    }
}
