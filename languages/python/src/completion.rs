//! Outcomes of sent calls.

use crate::errors;
use crate::message::Message;
use apus_bindings::Failure;
use pyo3::prelude::*;

/// The outcome of a sent call.
#[pyclass(frozen, module = "apus")]
pub(crate) struct Completion {
    #[pyo3(get)]
    cookie: u64,
    result: Result<Py<Message>, Failure>,
}

impl Completion {
    pub(crate) fn new(py: Python<'_>, completion: apus::Completion) -> PyResult<Self> {
        let apus::Completion { cookie, result, .. } = completion;
        let result = match result {
            Ok(bytes) => Ok(Py::new(py, Message::new(bytes))?),
            Err(error) => Err(error.into()),
        };
        Ok(Self { cookie, result })
    }
}

#[pymethods]
impl Completion {
    /// Returns the response, or raises the error.
    fn result(&self, py: Python<'_>) -> PyResult<Py<Message>> {
        match &self.result {
            Ok(message) => Ok(message.clone_ref(py)),
            Err(failure) => Err(errors::raise(py, failure)),
        }
    }

    /// The response; `None` if the call failed.
    #[getter]
    fn response(&self, py: Python<'_>) -> Option<Py<Message>> {
        self.result.as_ref().ok().map(|message| message.clone_ref(py))
    }

    /// The reason why the call failed; `None` if it succeeded.
    #[getter]
    fn error<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.result.as_ref().err().map(|failure| errors::exception(py, failure)).transpose()
    }

    fn __repr__(&self) -> String {
        match &self.result {
            Ok(_) => format!("<apus.Completion {}: a response>", self.cookie),
            Err(failure) => format!("<apus.Completion {}: {failure}>", self.cookie),
        }
    }
}
