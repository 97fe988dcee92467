//! Options of calls and of endpoints.

use crate::errors;
use apus::{CallOptions, PollMode};
use apus_bindings::EndpointOptions;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use std::time::Duration;

/// Returns the options of a call.
pub(crate) fn of_call(
    timeout: Option<f64>,
    idempotent: bool,
    wait_for_room: bool,
) -> PyResult<CallOptions> {
    let options = CallOptions::new().idempotent(idempotent).no_wait(!wait_for_room);
    Ok(match timeout {
        None => options,
        Some(seconds) => options.timeout(duration(seconds)?),
    })
}

/// Converts seconds to a duration; infinity means no limit.
pub(crate) fn duration(seconds: f64) -> PyResult<Duration> {
    if seconds.is_nan() || seconds < 0.0 {
        return Err(PyValueError::new_err("a timeout is a number of seconds, 0 or more"));
    }
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// Converts the keyword arguments of an endpoint.
pub(crate) fn of_endpoint(
    py: Python<'_>,
    settings: Option<&Bound<'_, PyDict>>,
    descriptors: bool,
) -> PyResult<EndpointOptions> {
    static TOML: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let text: String = match settings {
        None => String::new(),
        Some(settings) => {
            TOML.import(py, "apus._toml", "to_toml")?.call1((settings,))?.extract()?
        }
    };
    let mut options = EndpointOptions::parse(&text, descriptors)
        .map_err(|failure| errors::raise(py, &failure))?;
    // Rationale: Python processes usually share cores, and one that spins keeps its own peer from
    // running. At load 15 on two cores a call takes 13 µs asleep and 123 with `hybrid=50`
    // (pyzmq: 51; lab/log, 2026-11-26). On idle cores spinning is faster, and one keyword away.
    options.settings.poll.get_or_insert(PollMode::Block);
    Ok(options)
}
