//! What was found, and how bad is it?

use std::fmt;

use serde::{Serialize, Serializer};

/// How much a finding matters. What is worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Messages are lost, or do not get through at all.
    Error,
    /// Messages are slower than they have to be, or will be lost under load.
    Warning,
    /// Good to know; may be as it should be.
    Note,
    /// As it should be.
    Ok,
}

impl Severity {
    /// Whether this is something to mend.
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

/// What one check found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Name of the check, like `receive-buffer`. The same check may find several things.
    pub check: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What is the case, as a sentence without a full stop.
    pub found: String,
    /// What follows from it for messages; empty where nothing does.
    pub why: String,
    /// What it costs on this host, where that was measured.
    pub measured: Vec<Measured>,
    /// Commands, or settings of apus, that mend it. Each can be copied as it is.
    pub mend: Vec<String>,
}

/// A figure that was measured here and now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// What it is the figure of.
    pub what: String,
    /// The figure.
    #[serde(serialize_with = "rounded")]
    pub value: f64,
    /// Its unit, like `us`.
    pub unit: &'static str,
}

impl Measured {
    /// A figure with its unit.
    #[must_use]
    pub fn new(what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { what: what.into(), value, unit }
    }
}

/// `3.20 us: a reading of the clock`.
impl fmt::Display for Measured {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, value, unit } = self;
        write!(formatter, "{} {unit}: {what}", apus_report::result::short(*value))
    }
}

impl Finding {
    fn new(check: &'static str, severity: Severity, found: impl Into<String>) -> Self {
        let (why, measured, mend) = Default::default();
        Self { check, severity, found: found.into(), why, measured, mend }
    }

    /// As it should be.
    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, Severity::Ok, found)
    }

    /// Good to know.
    pub(super) fn note(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, Severity::Note, found)
    }

    /// To mend.
    pub(super) fn warning(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, Severity::Warning, found)
    }

    /// To mend first.
    pub(super) fn error(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, Severity::Error, found)
    }

    /// What follows from it.
    pub(super) fn because(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    /// What it costs.
    pub(super) fn measured(mut self, figures: impl IntoIterator<Item = Measured>) -> Self {
        self.measured.extend(figures);
        self
    }

    /// What mends it.
    pub(super) fn mend<T: Into<String>>(mut self, commands: impl IntoIterator<Item = T>) -> Self {
        self.mend.extend(commands.into_iter().map(Into::into));
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
        let figure = Measured::new("a reading of the clock", 24.9512, "ns");
        assert_eq!(figure.to_string(), "25.0 ns: a reading of the clock");
        assert_eq!(
            serde_json::to_string(&figure).unwrap(),
            r#"{"what":"a reading of the clock","value":24.951,"unit":"ns"}"#
        );
    }
}
