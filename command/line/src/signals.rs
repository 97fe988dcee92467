//! Signals: end commands that run until they are interrupted.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Calls `notify` at the first SIGINT or SIGTERM; the second one ends the process immediately.
///
/// # Errors
///
/// The system refuses to catch the signals or to start a thread.
pub fn on_first(notify: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let signalled = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The order of registration matters: at the first signal the conditional shutdown must
        // still see `false`.
        signal_hook::flag::register_conditional_shutdown(signal, 1, signalled.clone())?;
        signal_hook::flag::register(signal, signalled.clone())?;
    }
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if signals.forever().next().is_some() {
            notify();
        }
    })?;
    Ok(())
}
