//! Conversion of errors to the exceptions of `apus/errors.py`.

use apus::Execution;
use apus_bindings::Failure;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Returns the exception of a failure.
pub(crate) fn raise(py: Python<'_>, failure: &Failure) -> PyErr {
    match exception(py, failure) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Returns the exception of a failure as an object.
pub(crate) fn exception<'py>(py: Python<'py>, failure: &Failure) -> PyResult<Bound<'py, PyAny>> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let execution = match failure.execution {
        Execution::NotExecuted => "not executed",
        Execution::Executed => "executed",
        Execution::Unknown => "unknown",
    };
    let make = MAKE.import(py, "apus.errors", "_make")?;
    make.call1((failure.status.name(), execution, &failure.text))
}
