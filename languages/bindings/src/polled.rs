//! Futures of an endpoint, for threads outside of its runtime.

use crate::patience::INTERVAL;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::runtime::Handle;

/// Polls `future` once without a wake-up. Returns its output if it is ready.
///
/// Commands are ready unless a limit is reached; this saves the preparations for a wait.
pub(crate) fn once<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Waits for `future` on the calling thread, with the timers of `runtime`. Calls `keep_waiting`
/// after each [`INTERVAL`] (BIND-2); returns `None` if it returns `false`.
pub(crate) fn block_on<F: Future>(
    runtime: &Handle,
    mut future: Pin<&mut F>,
    mut keep_waiting: impl FnMut() -> bool,
) -> Option<F::Output> {
    loop {
        let part = async { tokio::time::timeout(INTERVAL, future.as_mut()).await };
        match runtime.block_on(part) {
            Ok(output) => return Some(output),
            Err(_) if !keep_waiting() => return None,
            Err(_) => {}
        }
    }
}
