//! Immediately ready futures, for threads outside of a runtime.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Polls `future` once without a wake-up. Returns its output if it is ready.
///
/// Commands are ready unless a limit is reached; this saves the preparations for a wait.
pub(crate) fn once<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
