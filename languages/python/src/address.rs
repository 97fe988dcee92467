//! Addresses of peers.

use crate::{errors, signals};
use apus_bindings::{AddressError, Failure, Status};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::net::SocketAddr;

/// The address of an endpoint.
#[pyclass(frozen, eq, hash, module = "apus")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Address(pub(crate) SocketAddr);

#[pymethods]
impl Address {
    /// The IP address as text; of a link-local one with its interface, as in `fe80::7%2`.
    #[getter]
    fn ip(&self) -> String {
        match self.0 {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
            _ => self.0.ip().to_string(),
        }
    }

    /// The port.
    #[getter]
    fn port(&self) -> u16 {
        self.0.port()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<apus.Address {}>", self.0)
    }
}

/// Resolves an address such as `inventory:4000`.
#[pyfunction]
pub(crate) fn resolve(py: Python<'_>, address: &str) -> PyResult<Address> {
    let name = address.to_owned();
    let resolved = match apus_bindings::parse_address(address) {
        Ok(parsed) => Ok(vec![parsed]),
        Err(_) => signals::interruptible(py, move || apus_bindings::resolve(&name))?,
    };
    let failed = |problem: String| {
        let text = format!("resolve \"{address}\": {problem}");
        errors::raise(py, &Failure::new(Status::AddressUnresolved, text))
    };
    let found = resolved.map_err(|error| failed(error.to_string()))?;
    found.first().copied().map(Address).ok_or_else(|| failed("the name has no address".to_owned()))
}

/// Converts an address from Python: an `Address`, or text with an IP address and a port.
///
/// # Errors
///
/// `AddressError` for a host name, which would be resolved in each call.
pub(crate) fn target(object: &Bound<'_, PyAny>) -> PyResult<SocketAddr> {
    if let Ok(address) = object.cast_exact::<Address>() {
        return Ok(address.get().0);
    }
    let Ok(text) = object.extract::<&str>() else {
        let kind = object.get_type().name()?;
        let text =
            format!("an apus.Address or text such as '10.0.0.7:4000' is required, not '{kind}'");
        return Err(PyTypeError::new_err(text));
    };
    apus_bindings::parse_address(text).map_err(|error| {
        let text = match error {
            AddressError::NotAnAddress(_) => format!(
                "\"{text}\" is no IP address with a port; resolve a name once, with apus.resolve"
            ),
            error => format!("\"{text}\": {error}"),
        };
        errors::raise(object.py(), &Failure::new(Status::AddressUnresolved, text))
    })
}
