//! Payloads: requests and responses passed from Python.

use crate::buffers::{copy, of_bytes};
use crate::message::Message;
use apus::{Bytes, Payload};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

/// Converts a payload from Python: a bytes-like object, or a list or tuple of these, which are not
/// joined.
///
/// # Errors
///
/// `TypeError` for anything else, `BufferError` for a buffer that is not contiguous.
pub(crate) fn payload(object: &Bound<'_, PyAny>) -> PyResult<Payload> {
    if let Ok(bytes) = object.cast_exact::<PyBytes>() {
        return Ok(of_bytes(bytes).into());
    }
    if let Ok(list) = object.cast_exact::<PyList>() {
        return list.iter().map(|item| slice(&item)).collect::<PyResult<Payload>>();
    }
    if let Ok(tuple) = object.cast_exact::<PyTuple>() {
        return tuple.iter().map(|item| slice(&item)).collect::<PyResult<Payload>>();
    }
    Ok(slice(object)?.into())
}

fn slice(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if let Ok(bytes) = object.cast_exact::<PyBytes>() {
        return Ok(of_bytes(bytes));
    }
    if let Ok(message) = object.cast_exact::<Message>() {
        return Ok(message.get().bytes().clone());
    }
    copy(object)
}
