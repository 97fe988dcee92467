//! Report of an examination: text and JSON.

use std::fmt;

use serde_json::json;

use super::finding::{Finding, Severity};
use apus_report::result::{Figure, Outcome, Row, Table};

/// All findings, the most severe first.
#[derive(Clone, Debug)]
pub struct DoctorReport {
    /// The findings as rows for JSON; `name` is the check.
    pub outcome: Outcome,
    /// The findings, the most severe first.
    pub findings: Vec<Finding>,
}

impl DoctorReport {
    pub(super) fn new(mut outcome: Outcome, mut findings: Vec<Finding>) -> Self {
        findings.sort_by_key(|finding| finding.severity);
        outcome.rows = findings.iter().map(row).collect();
        Self { outcome, findings }
    }

    /// Returns whether a finding requires action.
    #[must_use]
    pub fn has_faults(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity.is_fault())
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Returns a summary like `1 error, 2 warnings, 3 notes, 12 in order`.
    fn summary(&self) -> String {
        let severities =
            [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Note, "note")];
        let mut parts: Vec<String> = severities
            .into_iter()
            .map(|(severity, name)| (self.count(severity), name))
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("{count} {name}{}", if count == 1 { "" } else { "s" }))
            .collect();
        parts.push(format!("{} in order", self.count(Severity::Ok)));
        parts.join(", ")
    }
}

fn row(finding: &Finding) -> Row {
    let Finding { check, severity, fact, why, measurements, fixes } = finding;
    Row::new(check)
        .with("severity", Figure::Detail(json!(severity)))
        .with("found", Figure::Detail(json!(fact)))
        .with("why", Figure::Detail(json!(why)))
        .with("measured", Figure::Detail(json!(measurements)))
        .with("mend", Figure::Detail(json!(fixes)))
}

impl fmt::Display for DoctorReport {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        apus_report::result::table::write(&self.outcome, &[], ["", ""], to)?;
        let lines = self.findings.iter().map(|finding| {
            let Finding { check, severity, fact, .. } = finding;
            vec![severity.to_string(), (*check).to_owned(), fact.clone()]
        });
        let header = ["", "check", "found"].map(str::to_owned).to_vec();
        writeln!(to, "\n{}", Table::of_words(header, lines.collect()))?;
        for finding in self.findings.iter().filter(|finding| finding.severity != Severity::Ok) {
            explain(finding, to)?;
        }
        let measured: Vec<_> = self
            .findings
            .iter()
            .filter(|finding| finding.severity == Severity::Ok)
            .flat_map(|finding| &finding.measurements)
            .collect();
        if !measured.is_empty() {
            writeln!(to, "\nother measurements")?;
            measured.into_iter().try_for_each(|figure| writeln!(to, "  {figure}"))?;
        }
        writeln!(to, "\n{}", self.summary())
    }
}

fn explain(finding: &Finding, to: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Finding { check, severity, fact, why, measurements, fixes } = finding;
    writeln!(to, "\n{severity}: {check}: {fact}")?;
    for line in wrap(why) {
        writeln!(to, "  {line}")?;
    }
    for figure in measurements {
        writeln!(to, "  measured: {figure}")?;
    }
    for command in fixes {
        writeln!(to, "    {command}")?;
    }
    Ok(())
}

/// Width of prose in columns. Chosen by us for readability.
const WIDTH: usize = 100;

/// Wraps prose at [`WIDTH`] columns; a longer word has its own line.
fn wrap(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Measurement;
    use apus_report::machine::Machine;
    use serde_json::{Map, Value};

    fn report(findings: Vec<Finding>) -> DoctorReport {
        let kernel = "6.18.4".to_owned();
        let outcome = Outcome {
            version: "0.1.0".to_owned(),
            commit: "0123456789ab".to_owned(),
            machine: Machine { cpus: 2, kernel, arch: "x86_64".to_owned() },
            ..Outcome::new("doctor", Map::from_iter([("threads".to_owned(), json!(1))]))
        };
        DoctorReport::new(outcome, findings)
    }

    fn one_of_each() -> Vec<Finding> {
        vec![
            Finding::ok("clock-source", "the clock source is `tsc`")
                .with_measurements([Measurement::new("a reading", 25.0, "ns")]),
            Finding::note("link-rate", "x0: does not report its rate")
                .because("apus assumes 25 Gbit/s."),
            Finding::error(
                "path-mtu",
                "packets of 9000 bytes vanish on the way; up to 1500 arrive",
            )
            .because("This host does not notice.")
            .fix(["ip link set dev x0 mtu 1500"]),
            Finding::warning(
                "receive-buffer",
                "net.core.rmem_max is 212992 bytes, and apus requests 4194304",
            )
            .because("Packets are dropped.")
            .with_measurements([Measurement::new("loss of a burst", 92.65, "%")])
            .fix(["sysctl -w net.core.rmem_max=4194304"]),
        ]
    }

    #[test]
    fn text_lists_the_most_severe_first_with_fixes() {
        insta::assert_snapshot!(report(one_of_each()).to_string());
    }

    #[test]
    fn json_has_a_row_for_each_finding() {
        let json: Value = serde_json::from_str(&report(one_of_each()).outcome.json()).unwrap();
        let rows = json["rows"].as_array().unwrap();
        let names: Vec<_> =
            rows.iter().map(|row| (row["name"].as_str(), row["severity"].as_str())).collect();
        assert_eq!(names[0], (Some("path-mtu"), Some("error")));
        assert_eq!(names[3], (Some("clock-source"), Some("ok")));
        assert_eq!(rows[1]["mend"][0], "sysctl -w net.core.rmem_max=4194304");
        assert_eq!(rows[1]["measured"][0]["value"], 92.65);
    }

    #[test]
    fn prose_wraps_between_words() {
        let text = "word ".repeat(50);
        let lines = wrap(&text);
        assert_eq!(lines.iter().map(String::len).collect::<Vec<_>>(), [99, 99, 49]);
        assert_eq!(wrap("").len(), 0);
        assert_eq!(wrap(&"x".repeat(200)).len(), 1);
    }

    #[test]
    fn notes_require_no_action() {
        assert!(report(one_of_each()).has_faults());
        let harmless = report(vec![Finding::note("a", "b"), Finding::ok("c", "d")]);
        assert!(!harmless.has_faults());
        assert!(harmless.to_string().ends_with("\n1 note, 1 in order\n"));
    }
}
