//! Signals: every wait returns to Python at intervals to run its signal handlers (PY-2).

use apus_bindings::INTERVAL;
use pyo3::prelude::*;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};

/// Runs `body`, which waits, without the GIL. `body` calls its argument at intervals, and ends when
/// that returns `false`.
///
/// # Errors
///
/// The exception of a signal handler, such as `KeyboardInterrupt`.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    body: impl FnOnce(&mut dyn FnMut() -> bool) -> T + Send,
) -> PyResult<T> {
    let mut raised = None;
    let result = py.detach(|| body(&mut || run_handlers(&mut raised)));
    match raised {
        Some(error) => Err(error),
        None => Ok(result),
    }
}

/// Runs `body`, which cannot be interrupted, such as the resolution of a name. If a signal handler
/// raises an exception, `body` ends on a thread of its own, and its result is dropped.
///
/// # Errors
///
/// The exception of a signal handler, or the system refuses a thread.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    body: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = sync_channel(1);
    let thread = std::thread::Builder::new().name("apus-resolve".into());
    // Fails to send if the caller was interrupted.
    thread.spawn(move || drop(sender.send(body())))?;
    let result = wait(py, move |keep_waiting| {
        loop {
            match receiver.recv_timeout(INTERVAL) {
                Ok(result) => return Some(result),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if !keep_waiting() => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    })?;
    result.ok_or_else(|| pyo3::exceptions::PyRuntimeError::new_err("a thread of apus panicked"))
}

/// Runs Python's signal handlers. Returns whether none of them raised an exception.
fn run_handlers(raised: &mut Option<PyErr>) -> bool {
    // `None` while the interpreter ends: its daemon threads wait until the process has ended.
    *raised = Python::try_attach(|py| py.check_signals().err()).flatten();
    raised.is_none()
}
