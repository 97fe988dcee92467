//! Values that belong to the process that created them.

use crate::errors;
use apus::Closed;
use pyo3::prelude::*;

/// A value of one process. A child of that process cannot use it, and keeps it instead of freeing
/// it: a thread that does not exist in the child may hold its locks (PY-3).
pub(crate) struct Owned<T>(apus_process::Owned<T>);

impl<T> Owned<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(apus_process::Owned::new(value))
    }

    /// Returns the value.
    ///
    /// # Errors
    ///
    /// The value belongs to the parent process.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<&T> {
        self.own().map_err(|closed| errors::raise(py, &closed.into()))
    }

    /// Returns the value, unless it belongs to the parent process.
    pub(crate) fn own(&self) -> Result<&T, Closed> {
        Ok(self.0.own()?)
    }
}
