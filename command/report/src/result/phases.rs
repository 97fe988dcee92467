//! Phases: repetitions and losses of the measurements of an experiment.
//!
//! A phase is one measurement of one row, like one run of one transport. Experiments record each
//! phase once, when its last attempt has ended ([`Phases::record`]).
//! [`Outcome::account`](super::Outcome::account) shows the record: counts and incidents in the JSON
//! object, sentences in the notes, and losses in the rows.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The record of all phases of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Phases {
    /// Counts over all rows.
    #[serde(flatten)]
    pub counts: PhaseCounts,
    /// Phases without a clean first attempt; usually none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incidents: Vec<Incident>,
    /// Counts of each row, in the order of their first phases.
    #[serde(skip)]
    by_row: Vec<(String, PhaseCounts)>,
}

/// Numbers of phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseCounts {
    /// Phases with a result.
    pub measured: usize,
    /// Attempts beyond the first of each phase.
    pub repeated: usize,
    /// Phases whose best attempt was disturbed; their results are kept.
    pub disturbed: usize,
    /// Phases without a result.
    pub lost: usize,
}

/// A phase without a clean first attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Incident {
    /// The row, like `tcp`.
    pub row: String,
    /// The phase, like `run 2`.
    pub phase: String,
    /// Number of attempts; 0 if the phase was skipped because earlier ones were lost.
    pub attempts: usize,
    /// The end of the phase.
    pub end: PhaseEnd,
    /// The reason why each attempt did not count, or its disturbance, in order.
    pub why: Vec<String>,
}

/// The end of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseEnd {
    /// An attempt succeeded without disturbance.
    Measured,
    /// Every attempt was disturbed; the least disturbed attempt counts.
    Disturbed,
    /// No attempt had a result.
    Lost,
}

impl Phases {
    /// Records a phase with a clean first attempt.
    pub fn record_measured(&mut self, row: &str) {
        self.count(row, 1, PhaseEnd::Measured);
    }

    /// Records a phase without a clean first attempt.
    pub fn record(&mut self, incident: Incident) {
        self.count(&incident.row, incident.attempts, incident.end);
        self.incidents.push(incident);
    }

    /// Adds the record of further phases.
    pub fn extend(&mut self, other: Self) {
        self.counts.add(other.counts);
        for (row, counts) in other.by_row {
            self.of_mut(&row).add(counts);
        }
        self.incidents.extend(other.incidents);
    }

    /// Returns the counts of a row; all are 0 if it had no phase.
    #[must_use]
    pub fn of(&self, row: &str) -> PhaseCounts {
        let found = self.by_row.iter().find(|(name, _)| name == row);
        found.map_or_else(PhaseCounts::default, |(_, counts)| *counts)
    }

    /// Returns why the first lost phase of a row was lost; `None` if the row has lost none.
    #[must_use]
    pub fn why_lost(&self, row: &str) -> Option<&str> {
        let lost = |incident: &&Incident| incident.end == PhaseEnd::Lost && incident.row == row;
        self.incidents.iter().find(lost).map(Incident::last)
    }

    /// Returns the names of all rows, in the order of their first phases.
    pub fn rows(&self) -> impl Iterator<Item = &str> {
        self.by_row.iter().map(|(name, _)| &name[..])
    }

    /// Returns notes for readers of the result: each repeated or lost phase, and the number of
    /// disturbed ones.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.incidents.iter().filter_map(Incident::note).collect();
        let given_up = self.incidents.iter().filter(|incident| incident.attempts == 0).count();
        if given_up > 0 {
            notes.push(format!(
                "{given_up} further measurements were given up, because those before them were lost one after the other"
            ));
        }
        let mut disturbed =
            self.incidents.iter().filter(|incident| incident.end == PhaseEnd::Disturbed);
        if let Some(first) = disturbed.next() {
            let (count, all) = (self.counts.disturbed, self.counts.measured);
            notes.push(format!(
                "{count} of {all} measurements were disturbed and are kept: {} ({}, {})",
                first.last(),
                first.row,
                first.phase
            ));
        }
        notes
    }

    fn count(&mut self, row: &str, attempts: usize, end: PhaseEnd) {
        let counts = PhaseCounts {
            measured: usize::from(end != PhaseEnd::Lost),
            repeated: attempts.saturating_sub(1),
            disturbed: usize::from(end == PhaseEnd::Disturbed),
            lost: usize::from(end == PhaseEnd::Lost),
        };
        self.counts.add(counts);
        self.of_mut(row).add(counts);
    }

    fn of_mut(&mut self, row: &str) -> &mut PhaseCounts {
        let known = self.by_row.iter().position(|(name, _)| name == row);
        let index = known.unwrap_or_else(|| {
            self.by_row.push((row.to_owned(), PhaseCounts::default()));
            self.by_row.len() - 1
        });
        &mut self.by_row[index].1
    }
}

impl PhaseCounts {
    /// Returns whether every phase had a clean first attempt.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.repeated + self.disturbed + self.lost == 0
    }

    /// Returns the counts for a row; `None` if every phase was clean.
    #[must_use]
    pub fn detail(&self) -> Option<Value> {
        (!self.is_clean()).then(|| json!(self))
    }

    const fn add(&mut self, other: Self) {
        self.measured += other.measured;
        self.repeated += other.repeated;
        self.disturbed += other.disturbed;
        self.lost += other.lost;
    }
}

impl Incident {
    /// Returns a sentence; `None` for phases that [`Phases::notes`] counts together.
    fn note(&self) -> Option<String> {
        let Self { row, phase, attempts, end, why } = self;
        let (why, last) = (why.join("; then "), self.last());
        match (end, attempts) {
            (PhaseEnd::Lost, 0) | (PhaseEnd::Disturbed, 1) => None,
            (PhaseEnd::Measured, _) => Some(format!("{row}, {phase}: repeated, because {why}")),
            (PhaseEnd::Disturbed, _) => {
                Some(format!("{row}, {phase}: repeated, and disturbed all the same: {why}"))
            }
            (PhaseEnd::Lost, 1) => Some(format!("{row}, {phase}: no result: {last}")),
            (PhaseEnd::Lost, _) => {
                Some(format!("{row}, {phase}: no result after {attempts} attempts: {last}"))
            }
        }
    }

    /// Returns the problem of the last attempt.
    fn last(&self) -> &str {
        self.why.last().map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incident(row: &str, attempts: usize, end: PhaseEnd, why: &str) -> Incident {
        let (row, phase, why) = (row.to_owned(), "run 2".to_owned(), vec![why.to_owned()]);
        Incident { row, phase, attempts, end, why }
    }

    #[test]
    fn phases_are_counted_in_all_and_by_row() {
        let mut phases = Phases::default();
        phases.record_measured("apus");
        phases.record(incident("tcp", 2, PhaseEnd::Measured, "a host fell out"));
        phases.record(incident("tcp", 2, PhaseEnd::Disturbed, "a neighbour"));
        phases.record(incident("udp", 3, PhaseEnd::Lost, "no answer"));
        phases.record(incident("udp", 0, PhaseEnd::Lost, "given up"));
        let expected = PhaseCounts { measured: 3, repeated: 4, disturbed: 1, lost: 2 };
        assert_eq!(phases.counts, expected);
        assert!(phases.of("apus").is_clean() && phases.of("apus").detail().is_none());
        let of_tcp = PhaseCounts { measured: 2, repeated: 2, disturbed: 1, lost: 0 };
        assert_eq!(phases.of("tcp"), of_tcp);
        assert_eq!((phases.why_lost("tcp"), phases.why_lost("udp")), (None, Some("no answer")));
        assert_eq!(phases.rows().collect::<Vec<_>>(), ["apus", "tcp", "udp"]);
        let mut twice = phases.clone();
        twice.extend(phases);
        assert_eq!((twice.counts.measured, twice.of("tcp").repeated), (6, 4));
    }

    #[test]
    fn notes_name_repeated_and_lost_phases_and_count_the_rest() {
        let mut phases = Phases::default();
        phases.record(incident("tcp", 2, PhaseEnd::Measured, "a host fell out"));
        phases.record(incident("udp", 3, PhaseEnd::Lost, "no answer"));
        phases.record(incident("udp", 1, PhaseEnd::Lost, "no answer"));
        phases.record(incident("udp", 0, PhaseEnd::Lost, "given up"));
        phases.record(incident("apus", 2, PhaseEnd::Disturbed, "others used 40 %"));
        phases.record(incident("apus", 1, PhaseEnd::Disturbed, "others used 41 %"));
        let expected = [
            "tcp, run 2: repeated, because a host fell out",
            "udp, run 2: no result after 3 attempts: no answer",
            "udp, run 2: no result: no answer",
            "apus, run 2: repeated, and disturbed all the same: others used 40 %",
            "1 further measurements were given up, because those before them were lost one after the other",
            "2 of 3 measurements were disturbed and are kept: others used 40 % (apus, run 2)",
        ];
        assert_eq!(phases.notes(), expected);
        assert_eq!(Phases::default().notes(), [""; 0]);
    }

    #[test]
    fn machines_read_counts_and_incidents() {
        let mut phases = Phases::default();
        phases.record_measured("apus");
        let counts = json!({ "measured": 1, "repeated": 0, "disturbed": 0, "lost": 0 });
        assert_eq!(json!(phases), counts);
        phases.record(incident("tcp", 3, PhaseEnd::Lost, "no answer"));
        let expected = json!([{
            "row": "tcp", "phase": "run 2", "attempts": 3, "end": "lost", "why": ["no answer"],
        }]);
        assert_eq!(json!(phases)["incidents"], expected);
    }
}
