//! Findings: the result of a check, its severity, and the advice.

use std::fmt;

use serde::{Serialize, Serializer};

/// Severity of a finding; the most severe has the smallest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Messages are lost, or not delivered at all.
    Error,
    /// Messages are slower than necessary, or will be lost under load.
    Warning,
    /// Information; the state may be intended.
    Note,
    /// As recommended.
    Ok,
}

impl Severity {
    /// Returns whether the finding requires action.
    #[must_use]
    pub const fn is_fault(self) -> bool {
        matches!(self, Self::Error | Self::Warning)
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
            Self::Ok => "ok",
        })
    }
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Name of the check, for instance `receive-buffer`. A check may have several findings.
    pub check: &'static str,
    /// Severity.
    pub severity: Severity,
    /// The fact, as a sentence without a full stop.
    pub fact: String,
    /// Consequence for messages; empty if none.
    pub why: String,
    /// Measured costs on this host, if the check measures any.
    pub measurements: Vec<Measurement>,
    /// Commands, or settings of apus, that fix it. Each can be copied verbatim.
    pub fixes: Vec<String>,
}

/// A figure measured during the check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// Description of the figure.
    pub what: String,
    /// Value of the figure.
    #[serde(serialize_with = "rounded")]
    pub value: f64,
    /// Unit, for instance `us`.
    pub unit: &'static str,
}

impl Measurement {
    /// Creates a figure.
    #[must_use]
    pub fn new(what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { what: what.into(), value, unit }
    }
}

/// Formats as `3.20 us: a reading of the clock`.
impl fmt::Display for Measurement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, value, unit } = self;
        write!(formatter, "{} {unit}: {what}", apus_report::result::short(*value))
    }
}

impl Finding {
    fn new(check: &'static str, severity: Severity, fact: impl Into<String>) -> Self {
        let (why, measurements, fixes) = Default::default();
        Self { check, severity, fact: fact.into(), why, measurements, fixes }
    }

    /// Creates a finding without a problem.
    pub(super) fn ok(check: &'static str, fact: impl Into<String>) -> Self {
        Self::new(check, Severity::Ok, fact)
    }

    /// Creates a finding for information.
    pub(super) fn note(check: &'static str, fact: impl Into<String>) -> Self {
        Self::new(check, Severity::Note, fact)
    }

    /// Creates a finding that should be fixed.
    pub(super) fn warning(check: &'static str, fact: impl Into<String>) -> Self {
        Self::new(check, Severity::Warning, fact)
    }

    /// Creates a finding that should be fixed first.
    pub(super) fn error(check: &'static str, fact: impl Into<String>) -> Self {
        Self::new(check, Severity::Error, fact)
    }

    /// Adds the consequence.
    pub(super) fn because(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    /// Adds measured figures.
    pub(super) fn with_measurements(
        mut self,
        figures: impl IntoIterator<Item = Measurement>,
    ) -> Self {
        self.measurements.extend(figures);
        self
    }

    /// Adds commands that fix it.
    pub(super) fn fix<T: Into<String>>(mut self, commands: impl IntoIterator<Item = T>) -> Self {
        self.fixes.extend(commands.into_iter().map(Into::into));
        self
    }
}

fn rounded<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(apus_report::result::rounded(*value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_comes_first() {
        use Severity::{Error, Note, Ok, Warning};
        assert!(Error < Warning && Warning < Note && Note < Ok);
        assert_eq!([Error, Warning, Note, Ok].map(Severity::is_fault), [true, true, false, false]);
    }

    #[test]
    fn a_figure_is_read_with_its_unit() {
        let figure = Measurement::new("a reading of the clock", 24.9512, "ns");
        assert_eq!(figure.to_string(), "25.0 ns: a reading of the clock");
        assert_eq!(
            serde_json::to_string(&figure).unwrap(),
            r#"{"what":"a reading of the clock","value":24.951,"unit":"ns"}"#
        );
    }
}
