//! What ends a command that runs until somebody interrupts it?

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Calls `tell` at the first SIGINT or SIGTERM; the second one ends the process at once.
///
/// # Errors
///
/// The system does not let signals be caught.
pub(crate) fn at_first(tell: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let seen = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal must not find it set.
        signal_hook::flag::register_conditional_shutdown(signal, 1, seen.clone())?;
        signal_hook::flag::register(signal, seen.clone())?;
    }
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if signals.forever().next().is_some() {
            tell();
        }
    })?;
    Ok(())
}
