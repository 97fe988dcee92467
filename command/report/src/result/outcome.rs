//! The outcome of an experiment: rows, ratios, comparisons and notes.

use serde::Serialize;
use serde_json::{Map, Value};

use super::comparison::Comparison;
use super::phases::Phases;
use super::ratio::Ratio;
use super::row::Row;
use crate::machine::Machine;

/// Commit that apus was built from; `unknown` outside a repository.
pub const COMMIT: &str = env!("APUS_COMMIT");

/// The outcome of one experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Name of the experiment, like `rtt`.
    pub experiment: String,
    /// Version of apus.
    pub version: String,
    /// [`COMMIT`].
    pub commit: String,
    /// The machine.
    pub machine: Machine,
    /// More members of the JSON object, by name; usually none.
    #[serde(flatten)]
    pub members: Map<String, Value>,
    /// The options and derived settings, in the order of the options.
    pub config: Map<String, Value>,
    /// The figures, one row for each contender.
    pub rows: Vec<Row>,
    /// Quotients of rows, by a name like `apus/tcp`.
    #[serde(serialize_with = "as_map")]
    pub ratios: Vec<(String, Ratio)>,
    /// Comparisons with a confidence interval; absent if ratios suffice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<Comparison>,
    /// Counts of repeated, disturbed and lost phases; absent without measurements in real time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
    /// Reservations about the figures; usually none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Outcome {
    /// Returns an empty outcome of this version of apus on this machine.
    #[must_use]
    pub fn new(experiment: &str, config: Map<String, Value>) -> Self {
        Self {
            experiment: experiment.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: COMMIT.to_owned(),
            machine: Machine::here(),
            members: Map::new(),
            config,
            rows: Vec::new(),
            ratios: Vec::new(),
            comparisons: Vec::new(),
            phases: None,
            notes: Vec::new(),
        }
    }

    /// Adds the record of the phases: to the JSON object, to the notes, and to the rows of the same
    /// names. A row without a result is added at the end, with the reason.
    pub fn account(&mut self, phases: Phases) {
        for name in phases.rows() {
            let counts = phases.of(name);
            match self.rows.iter_mut().find(|row| row.name == name) {
                Some(row) => row.count(&counts),
                None => {
                    let why = phases.why_lost(name);
                    self.rows.extend(why.map(|why| Row::missing(name, why, &counts)));
                }
            }
        }
        self.account_without_rows(phases);
    }

    /// Adds the record of the phases to the JSON object and to the notes, if rows and phases have
    /// different names.
    pub fn account_without_rows(&mut self, phases: Phases) {
        self.notes.extend(phases.notes());
        self.phases = Some(phases);
    }

    /// Returns the names of the rows without a result.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().filter(|row| row.is_missing()).map(|row| &row.name[..])
    }

    /// Returns whether the experiment has a usable result: no row is missing; or at least two rows
    /// have a result, so that there is a comparison, and the row of apus, if there is one, is not
    /// missing.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        let missing = self.missing().count();
        let compared = self.rows.len() - missing >= 2;
        missing == 0 || (compared && self.missing().all(|name| name != "apus"))
    }

    /// Returns one JSON object, as described by the command line's contract.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("maps with text keys and finite numbers")
    }
}

/// Returns the values by name, in this order.
pub fn named<'a>(values: impl IntoIterator<Item = (&'a str, Value)>) -> Map<String, Value> {
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn as_map<S: serde::Serializer>(pairs: &[(String, Ratio)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(pairs.iter().map(|(name, ratio)| (name, ratio)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Figure, Incident, PhaseCounts, PhaseEnd};
    use crate::stats::Spread;
    use serde_json::json;

    /// Returns an outcome with each kind of content.
    fn outcome() -> Outcome {
        let spread = |runs: &[f64]| Figure::Spread(Spread::over(runs));
        let config = json!({"size": 100, "poll": "spin", "settings": {"udp": "not in the table"}});
        let Value::Object(config) = config else { unreachable!("an object above") };
        let kernel = "6.18.4".to_owned();
        Outcome {
            commit: "0123456789ab".to_owned(),
            version: "0.1.0".to_owned(),
            machine: Machine { cpus: 2, kernel, arch: "x86_64".to_owned() },
            rows: vec![
                Row::new("apus")
                    .with("p50_us", spread(&[5.91, 5.8, 6.123_456_789]))
                    .with("samples", Figure::Count(1_234_567))
                    .with("by_size", Figure::Detail(json!([{"upto": 100, "p50": 1.5}]))),
                Row::new("udp").with("p50_us", spread(&[5.0])),
            ],
            ratios: vec![
                ("apus/udp".to_owned(), Ratio::over(&[5.9, 5.8, 6.1], &[5.0, 5.0, 5.1]).unwrap()),
                ("apus/tcp".to_owned(), Ratio::over(&[5.9], &[7.0]).unwrap()),
            ],
            notes: vec!["client and server share one core".to_owned()],
            ..Outcome::new("rtt", config)
        }
    }

    #[test]
    fn machines_read_one_json_object() {
        insta::assert_snapshot!(outcome().json());
    }

    #[test]
    fn people_read_a_table() {
        insta::assert_snapshot!(outcome().to_string());
    }

    #[test]
    fn the_record_of_the_phases_is_in_rows_and_notes() {
        let mut outcome = outcome();
        let incident = |row: &str, end| Incident {
            row: row.to_owned(),
            phase: "run 1".to_owned(),
            attempts: 3,
            end,
            why: vec!["no answer".to_owned()],
        };
        let mut phases = Phases::default();
        phases.record_measured("apus");
        phases.record(incident("udp", PhaseEnd::Measured));
        phases.record(incident("tcp", PhaseEnd::Lost));
        outcome.account(phases);
        let json: Value = serde_json::from_str(&outcome.json()).unwrap();
        assert_eq!((&json["phases"]["measured"], &json["phases"]["lost"]), (&json!(2), &json!(1)));
        assert_eq!(json["rows"][0].get("phases"), None, "all phases were clean");
        assert_eq!(json["rows"][1]["phases"]["repeated"], 2);
        let counts = json!({ "measured": 0, "repeated": 2, "disturbed": 0, "lost": 1 });
        let lost = json!({ "name": "tcp", "missing": "no answer", "phases": counts });
        assert_eq!(json["rows"][2], lost);
        let table = outcome.to_string();
        assert!(table.contains(" tcp             no result "), "{table}");
        assert!(table.contains("tcp, run 1: no result after 3 attempts: no answer"), "{table}");
        assert_eq!(outcome.missing().collect::<Vec<_>>(), ["tcp"]);
        assert!(outcome.is_answered(), "apus and udp");
    }

    #[test]
    fn a_comparison_needs_apus_and_another_row() {
        let answered = |missing: &[&str], others: &[&str]| {
            let row = |name: &&str| Row::new(name);
            let lost = |name: &&str| Row::missing(name, "why", &PhaseCounts::default());
            let rows = missing.iter().map(lost).chain(others.iter().map(row)).collect();
            Outcome { rows, ..outcome() }.is_answered()
        };
        assert!(answered(&[], &["tcp"]) && answered(&["udp"], &["apus", "tcp"]));
        assert!(!answered(&["apus"], &["udp", "tcp"]) && !answered(&["tcp"], &["apus"]));
    }

    #[test]
    fn an_empty_outcome_is_an_object() {
        let json: Value = serde_json::from_str(&Outcome::new("rtt", Map::new()).json()).unwrap();
        assert_eq!((&json["rows"], &json["ratios"]), (&json!([]), &json!({})));
        assert_eq!(json.get("notes"), None);
        assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    }
}
