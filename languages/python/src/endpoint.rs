//! Endpoints.

use crate::address::{Address, target};
use crate::completion::Completion;
use crate::errors;
use crate::fork::Owned;
use crate::message::Message;
use crate::options;
use crate::payload::payload;
use crate::request::Request;
use crate::signals;
use apus::{CallId, Closed};
use apus_bindings::{Failure, Patience};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// Client and server in one.
#[pyclass(frozen, module = "apus")]
pub(crate) struct Endpoint {
    endpoint: Owned<apus_bindings::Endpoint>,
    address: Address,
}

impl Endpoint {
    fn open(
        py: Python<'_>,
        address: Option<&str>,
        settings: Option<&Bound<'_, PyDict>>,
        descriptors: bool,
    ) -> PyResult<Self> {
        let options = options::of_endpoint(py, settings, descriptors)?;
        let endpoint = match address {
            // A name server may take its time.
            Some(address) if address.parse::<SocketAddr>().is_err() => {
                let address = address.to_owned();
                signals::interruptible(py, move || {
                    apus_bindings::Endpoint::open(Some(&address), options)
                })?
            }
            address => py.detach(|| apus_bindings::Endpoint::open(address, options)),
        };
        let endpoint = endpoint.map_err(|failure| errors::raise(py, &failure))?;
        let address = Address(endpoint.handle().local_addr());
        Ok(Self { endpoint: Owned::new(endpoint), address })
    }

    /// Waits with `receive` for up to `limit` messages, without the GIL. Handles signals during the
    /// wait (PY-2).
    fn wait<T: Send>(
        &self,
        py: Python<'_>,
        limit: usize,
        timeout: Option<f64>,
        receive: Receive<T>,
    ) -> PyResult<Vec<T>> {
        let timeout = timeout.map(options::duration).transpose()?;
        let timeout = timeout.filter(|timeout| *timeout < Duration::MAX);
        let endpoint = self.endpoint.get(py)?;
        let received = signals::wait(py, |keep_waiting| {
            let patience = Patience { timeout, keep_waiting: Some(keep_waiting) };
            let mut received = Vec::new();
            receive(endpoint, &mut received, limit, patience).map(|_| received)
        })?;
        received.map_err(|closed| errors::raise(py, &closed.into()))
    }

    /// Waits for messages and returns them as a list of `class`.
    fn wait_for_many<'py, T: Send, C: IntoPyObject<'py>>(
        &self,
        py: Python<'py>,
        limit: usize,
        timeout: Option<f64>,
        receive: Receive<T>,
        class: impl Fn(Python<'py>, T) -> PyResult<C>,
    ) -> PyResult<Bound<'py, PyList>> {
        if limit == 0 {
            return Err(PyValueError::new_err("limit is at least 1"));
        }
        let received = self.wait(py, limit, timeout, receive)?;
        let list = received.into_iter().map(|message| class(py, message));
        PyList::new(py, list.collect::<PyResult<Vec<_>>>()?)
    }
}

/// A function that waits for messages and appends up to a number of them.
type Receive<T> =
    fn(&apus_bindings::Endpoint, &mut Vec<T>, usize, Patience<'_>) -> Result<usize, Closed>;

#[pymethods]
impl Endpoint {
    /// Opens an endpoint that serves requests.
    #[staticmethod]
    #[pyo3(signature = (address, **settings))]
    fn bind(py: Python<'_>, address: &str, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::open(py, Some(address), settings, false)
    }

    /// Opens an endpoint that does not serve requests.
    #[staticmethod]
    #[pyo3(signature = (**settings))]
    fn client(py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::open(py, None, settings, false)
    }

    /// Opens an endpoint with descriptors, for `apus.aio`.
    #[staticmethod]
    #[pyo3(signature = (address, settings))]
    fn _with_descriptors(
        py: Python<'_>,
        address: Option<&str>,
        settings: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        Self::open(py, address, Some(settings), true)
    }

    /// The address of the socket.
    #[getter]
    const fn address(&self) -> Address {
        self.address
    }

    /// Sends a request and waits for the response.
    #[pyo3(signature = (to, request, *, timeout = None, idempotent = false))]
    fn call(
        &self,
        py: Python<'_>,
        to: &Bound<'_, PyAny>,
        request: &Bound<'_, PyAny>,
        timeout: Option<f64>,
        idempotent: bool,
    ) -> PyResult<Message> {
        let to = target(to)?;
        let options = options::of_call(timeout, idempotent, true)?;
        let payload = payload(request)?;
        let endpoint = self.endpoint.get(py)?;
        let result = signals::wait(py, |keep_waiting| {
            endpoint.call(to, payload, options, Some(keep_waiting))
        })?;
        result.map(Message::new).map_err(|error| errors::raise(py, &error.into()))
    }

    /// Sends a request without waiting for the response. Returns the number of the call.
    #[pyo3(signature = (to, request, cookie = 0, *, timeout = None, idempotent = false, wait_for_room = true))]
    #[expect(clippy::too_many_arguments, reason = "most are keywords")]
    fn send(
        &self,
        py: Python<'_>,
        to: &Bound<'_, PyAny>,
        request: &Bound<'_, PyAny>,
        cookie: u64,
        timeout: Option<f64>,
        idempotent: bool,
        wait_for_room: bool,
    ) -> PyResult<NonZeroU64> {
        let to = target(to)?;
        let options = options::of_call(timeout, idempotent, wait_for_room)?;
        let payload = payload(request)?;
        let endpoint = self.endpoint.get(py)?;
        let sent = signals::wait(py, |keep_waiting| {
            endpoint.send(to, payload, cookie, options, Some(keep_waiting))
        })?;
        sent.map(CallId::to_bits).map_err(|error| errors::raise(py, &error.into()))
    }

    /// Sends several requests together. Returns the number of sent requests: fewer if a limit is
    /// reached.
    #[pyo3(signature = (to, requests, first_cookie = 0, *, timeout = None, idempotent = false))]
    fn send_many(
        &self,
        py: Python<'_>,
        to: &Bound<'_, PyAny>,
        requests: &Bound<'_, PyAny>,
        first_cookie: u64,
        timeout: Option<f64>,
        idempotent: bool,
    ) -> PyResult<u64> {
        let to = target(to)?;
        let options = options::of_call(timeout, idempotent, false)?;
        let payloads: PyResult<Vec<_>> =
            requests.try_iter()?.map(|request| payload(&request?)).collect();
        let payloads = payloads?;
        let endpoint = self.endpoint.get(py)?;
        let (sent, failure) = py.detach(|| {
            // Their packets leave together.
            let _cork = endpoint.handle().cork();
            let mut sent = 0;
            for payload in payloads {
                let cookie = first_cookie.wrapping_add(sent);
                match endpoint.send(to, payload, cookie, options, None) {
                    Ok(_) => sent += 1,
                    Err(error) => return (sent, Some(Failure::from(error))),
                }
            }
            (sent, None)
        });
        match failure {
            // Requests sent before the failure are not lost: the caller counts them.
            Some(failure) if sent == 0 && !failure.is_back_pressure() => {
                Err(errors::raise(py, &failure))
            }
            _ => Ok(sent),
        }
    }

    /// Cancels a call. Returns whether it was still running.
    fn cancel(&self, py: Python<'_>, call: u64) -> PyResult<bool> {
        let endpoint = self.endpoint.get(py)?;
        let Some(call) = NonZeroU64::new(call) else { return Ok(false) };
        Ok(py.detach(|| endpoint.handle().cancel(CallId::from_bits(call))))
    }

    /// Waits for completions.
    #[pyo3(signature = (limit = 64, timeout = None))]
    fn recv_completions<'py>(
        &self,
        py: Python<'py>,
        limit: usize,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.wait_for_many(
            py,
            limit,
            timeout,
            apus_bindings::Endpoint::recv_completions,
            Completion::new,
        )
    }

    /// Waits for a request. Returns `None` if none arrives in time.
    #[pyo3(signature = (timeout = None))]
    fn recv_request(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Request>> {
        let mut received = self.wait(py, 1, timeout, apus_bindings::Endpoint::recv_requests)?;
        received.pop().map(|request| Request::new(py, request)).transpose()
    }

    /// Waits for requests.
    #[pyo3(signature = (limit = 64, timeout = None))]
    fn recv_requests<'py>(
        &self,
        py: Python<'py>,
        limit: usize,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.wait_for_many(py, limit, timeout, apus_bindings::Endpoint::recv_requests, Request::new)
    }

    /// Waits until the peers have acknowledged all messages. Returns whether they did in time.
    fn drain(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let timeout = Some(options::duration(timeout)?);
        let endpoint = self.endpoint.get(py)?;
        signals::wait(py, |keep_waiting| {
            endpoint.drain(Patience { timeout, keep_waiting: Some(keep_waiting) })
        })
    }

    /// All counters and gauges by name.
    fn metrics(&self, py: Python<'_>) -> PyResult<BTreeMap<String, u64>> {
        let endpoint = self.endpoint.get(py)?;
        Ok(py.detach(|| endpoint.metrics()))
    }

    /// Shuts the endpoint down. Does nothing in a child of a fork: the endpoint is the parent's.
    fn close(&self, py: Python<'_>) {
        if let Ok(endpoint) = self.endpoint.own() {
            py.detach(|| endpoint.handle().shutdown());
        }
    }

    /// The descriptor that is readable while completions may be available.
    fn _completion_descriptor(&self, py: Python<'_>) -> PyResult<RawFd> {
        let descriptor = self.endpoint.get(py)?.completion_descriptor();
        descriptor.map(|fd| fd.as_raw_fd()).map_err(|failure| errors::raise(py, &failure))
    }

    /// The descriptor that is readable while requests may be available.
    fn _request_descriptor(&self, py: Python<'_>) -> PyResult<RawFd> {
        let descriptor = self.endpoint.get(py)?.request_descriptor();
        descriptor.map(|fd| fd.as_raw_fd()).map_err(|failure| errors::raise(py, &failure))
    }

    const fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Waits for the next request; the iteration ends when the endpoint is closed.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Request>> {
        match self.recv_request(py, None) {
            Err(error) if is_closed(py, &error) => Ok(None),
            received => received,
        }
    }

    const fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        self.close(py);
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<apus.Endpoint {} {}>", self.address.0, self._state(py))
    }

    /// The timeout of calls without their own, in seconds; infinity for none.
    fn _call_timeout(&self, py: Python<'_>) -> PyResult<f64> {
        let timeout = self.endpoint.get(py)?.handle().call_timeout();
        Ok(if timeout == Duration::MAX { f64::INFINITY } else { timeout.as_secs_f64() })
    }

    /// The state, in a word or two.
    fn _state(&self, py: Python<'_>) -> &'static str {
        match self.endpoint.get(py) {
            Ok(endpoint) if py.detach(|| endpoint.handle().is_closed()) => "closed",
            Ok(_) => "open",
            Err(_) => "of the parent process",
        }
    }
}

/// Returns whether an exception means that the endpoint was shut down.
fn is_closed(py: Python<'_>, error: &PyErr) -> bool {
    let kind = error.value(py).getattr("kind").and_then(|kind| kind.extract::<String>());
    kind.is_ok_and(|kind| kind == "closed")
}
