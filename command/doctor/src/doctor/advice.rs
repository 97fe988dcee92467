//! Advice: one line that offers `apus doctor` if this host slows messages down.

use super::finding::Finding;
use super::report::DoctorReport;

/// Returns a line about `apus doctor` if the report contains faults.
#[must_use]
pub fn advice(report: &DoctorReport) -> Option<String> {
    let faults: Vec<&Finding> =
        report.findings.iter().filter(|finding| finding.severity.is_fault()).collect();
    line(&faults)
}

/// Returns the line; `None` without faults. The first fault is the most severe one.
fn line(faults: &[&Finding]) -> Option<String> {
    let (first, others) = faults.split_first()?;
    let more = match others.len() {
        0 => String::new(),
        count => format!(", and {count} more"),
    };
    Some(format!(
        "This host slows messages down: {}{more}. `apus doctor` says what to change.",
        first.fact
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    fn fault(fact: &str) -> Finding {
        Finding {
            check: "a-check",
            severity: Severity::Warning,
            fact: fact.to_owned(),
            why: String::new(),
            measurements: Vec::new(),
            fixes: Vec::new(),
        }
    }

    #[test]
    fn the_worst_fault_is_named_and_the_others_are_counted() {
        let (one, other) = (fault("buffers are small"), fault("cores are busy"));
        assert_eq!(line(&[]), None);
        let alone = line(&[&one]).unwrap();
        assert!(
            alone.starts_with("This host slows messages down: buffers are small. `apus doctor`")
        );
        let both = line(&[&one, &other]).unwrap();
        assert!(both.contains("buffers are small, and 1 more. "), "{both}");
    }
}
