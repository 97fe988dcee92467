//! Interrupts: Ctrl-C reaches all processes of the lab at once, and the lab alone acts on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use apus_testbed::error::{Doing, Error};

/// Whether the lab has been interrupted.
#[derive(Clone, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catches the first SIGINT or SIGTERM; the second ends the process immediately.
    pub(super) fn catch() -> Result<Self, Error> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM] {
            // The order matters: at the first signal the conditional shutdown must still see
            // `false`.
            flag::register_conditional_shutdown(signal, 1, interrupt.0.clone())
                .and_then(|_| flag::register(signal, interrupt.0.clone()))
                .doing(|| "catch signals".to_owned())?;
        }
        Ok(interrupt)
    }

    pub(super) fn is_caught(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Lets a client or server continue when the terminal interrupts its process group: its parent ends
/// it after its report.
pub(super) fn ignore_interrupts() -> Result<(), Error> {
    flag::register(SIGINT, Arc::default()).map(drop).doing(|| "catch signals".to_owned())
}
