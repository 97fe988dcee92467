//! Received bytes.

use crate::buffers;
use apus::Bytes;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes};
use std::ffi::c_int;

/// Received bytes: a bytes-like object that owns the message without a copy.
#[pyclass(frozen, module = "apus")]
pub(crate) struct Message(Bytes);

impl Message {
    pub(crate) const fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }

    pub(crate) const fn bytes(&self) -> &Bytes {
        &self.0
    }
}

#[pymethods]
impl Message {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> Py<PyAny> {
        let equal = match other.cast_exact::<Self>() {
            Ok(message) => Some(message.get().0 == self.0),
            Err(_) => buffers::equals(other, &self.0),
        };
        match equal {
            Some(equal) => PyBool::new(py, equal).to_owned().into_any().unbind(),
            None => py.NotImplemented(),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        // Equal to the hash of equal `bytes`.
        PyBytes::new(py, &self.0).hash()
    }

    fn __repr__(&self) -> String {
        format!("<apus.Message of {} bytes>", self.0.len())
    }

    /// # Safety
    ///
    /// Called by Python only.
    #[allow(unsafe_code)]
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        // SAFETY: the message owns its bytes and never changes them.
        unsafe { buffers::fill_view(slf.as_any(), slf.get().bytes(), view, flags) }
    }
}
