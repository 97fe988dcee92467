//! Findings of a checker.

use std::fmt;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The promise.
    pub promise: &'static str,
    /// Description of the violation.
    pub what: String,
}

impl Violation {
    pub(crate) fn new(promise: &'static str, what: String) -> Self {
        Self { promise, what }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.what)
    }
}
