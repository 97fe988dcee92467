//! Requests at a server.

use crate::address::Address;
use crate::errors;
use crate::fork::Owned;
use crate::message::Message;
use crate::payload::payload;
use apus_bindings::{Failure, Status};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// A received request, to be answered once.
#[pyclass(frozen, module = "apus")]
pub(crate) struct Request {
    /// `None` after the reply.
    request: Owned<Mutex<Option<apus_bindings::Request>>>,
    payload: Py<Message>,
    peer: Address,
}

impl Request {
    pub(crate) fn new(py: Python<'_>, request: apus_bindings::Request) -> PyResult<Self> {
        let payload = Py::new(py, Message::new(request.payload().clone()))?;
        let peer = Address(request.peer_addr());
        Ok(Self { request: Owned::new(Mutex::new(Some(request))), payload, peer })
    }

    /// Takes the right to reply.
    fn take(&self, py: Python<'_>) -> PyResult<apus_bindings::Request> {
        let mut request = self.request.get(py)?.lock().unwrap_or_else(PoisonError::into_inner);
        request.take().ok_or_else(|| {
            let text = "the request has been answered or abandoned already";
            errors::raise(py, &Failure::new(Status::InvalidArgument, text))
        })
    }
}

#[pymethods]
impl Request {
    /// The client's message.
    #[getter]
    fn payload(&self, py: Python<'_>) -> Py<Message> {
        self.payload.clone_ref(py)
    }

    /// The client's address.
    #[getter]
    fn peer(&self) -> Address {
        self.peer
    }

    /// Sends the response.
    fn reply(&self, py: Python<'_>, response: &Bound<'_, PyAny>) -> PyResult<()> {
        // Convert first, so that a response of a wrong type leaves the request unchanged.
        let response = payload(response)?;
        let request = self.take(py)?;
        let result = py.detach(|| request.reply(response));
        result.map_err(|failure| errors::raise(py, &failure))
    }

    /// Drops the request: its client gets an error. Does nothing in a child of a fork: the request
    /// is the parent's.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        if self.request.own().is_err() {
            return Ok(());
        }
        let request = self.take(py)?;
        py.detach(|| drop(request));
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("<apus.Request from {}>", self.peer.0)
    }
}

/// Sends the responses of several requests. Returns the number of clients that no longer wait.
#[pyfunction]
pub(crate) fn reply_all(
    py: Python<'_>,
    replies: Vec<(Bound<'_, Request>, Bound<'_, PyAny>)>,
) -> PyResult<usize> {
    let payloads: PyResult<Vec<_>> =
        replies.iter().map(|(_, response)| payload(response)).collect();
    let requests: PyResult<Vec<_>> =
        replies.iter().map(|(request, _)| request.get().take(py)).collect();
    let (payloads, requests) = (payloads?, requests?);
    let failures = py.detach(|| {
        let results = requests.into_iter().zip(payloads);
        let results = results.map(|(request, payload)| request.reply(payload));
        results.filter_map(Result::err).collect::<Vec<_>>()
    });
    let mut gone = 0;
    for failure in failures {
        if failure.status != Status::ClientGone {
            return Err(errors::raise(py, &failure));
        }
        gone += 1;
    }
    Ok(gone)
}
