//! Requests at a server.

use crate::address::Address;
use crate::errors;
use crate::fork::Owned;
use crate::message::Message;
use crate::payload::payload;
use crate::signals;
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

    /// Gives the right to reply back, after a reply that was not sent.
    fn put_back(&self, py: Python<'_>, request: apus_bindings::Request) -> PyResult<()> {
        let mut place = self.request.get(py)?.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(request);
        Ok(())
    }
}

/// Returns whether the request may be replied to again after this failure, with a shorter response.
const fn may_be_repeated(failure: &Failure) -> bool {
    matches!(failure.status, Status::MessageTooLarge | Status::EmptyMessage)
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
        let mut request = self.take(py)?;
        let replied =
            signals::wait(py, |keep_waiting| request.reply(response, Some(keep_waiting)));
        if !matches!(&replied, Ok(result) if !result.as_ref().is_err_and(may_be_repeated)) {
            self.put_back(py, request)?;
        }
        replied?.map_err(|failure| errors::raise(py, &failure))
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

    const fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Drops the request, unless it is answered.
    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        if let Ok(request) = self.take(py) {
            py.detach(|| drop(request));
        }
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
    let mut payloads = payloads?.into_iter();
    let requests: Vec<_> = replies.iter().map(|(request, _)| request.get()).collect();
    let mut taken = Vec::with_capacity(requests.len());
    let mut refused = None;
    for request in &requests {
        match request.take(py) {
            Ok(pending) => taken.push(pending),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    let mut failures = Vec::new();
    let mut settled = 0;
    let replied = if refused.is_some() {
        Ok(())
    } else {
        signals::wait(py, |keep_waiting| {
            for (request, response) in taken.iter_mut().zip(&mut payloads) {
                match request.reply(response, Some(keep_waiting)) {
                    Err(failure) if failure.status == Status::Cancelled => return,
                    Err(failure) => failures.push(failure),
                    Ok(()) => {}
                }
                settled += 1;
            }
        })
    };
    // Requests without a reply stay the caller's.
    for (request, pending) in requests.iter().zip(taken).skip(settled) {
        request.put_back(py, pending)?;
    }
    if let Some(error) = refused {
        return Err(error);
    }
    replied?;
    let mut gone = 0;
    for failure in failures {
        if failure.status != Status::ClientGone {
            return Err(errors::raise(py, &failure));
        }
        gone += 1;
    }
    Ok(gone)
}
