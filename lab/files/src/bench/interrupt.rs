//! Interrupts: Ctrl-C ends the measurement, and everything that it started is cleaned up.
//!
//! A file system that does not answer keeps the measuring thread in the kernel. Some time after the
//! signal, its processes are therefore killed: the kernel then ends the operations of their mounts
//! with an error.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use apus_testbed::error::{Doing, Error};
use rustix::process::Pid;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use super::family::Family;

/// Time for the current operation to end after a signal.
const PATIENCE: Duration = Duration::from_secs(5);

/// Interruption of the measurement, and the processes that belong to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupt {
    caught: Arc<AtomicBool>,
    processes: Arc<Mutex<Vec<Pid>>>,
}

impl Interrupt {
    /// Catches the first SIGINT or SIGTERM; the second one ends this process immediately.
    pub(super) fn catch() -> Result<Self, Error> {
        let interrupt = Self::default();
        let doing = || "catch signals".to_owned();
        for signal in [SIGINT, SIGTERM] {
            // The order matters: at the first signal the conditional shutdown must still see
            // `false`.
            flag::register_conditional_shutdown(signal, 1, interrupt.caught.clone())
                .and_then(|_| flag::register(signal, interrupt.caught.clone()))
                .doing(doing)?;
        }
        let mut signals = Signals::new([SIGINT, SIGTERM]).doing(doing)?;
        let processes = Arc::clone(&interrupt.processes);
        let watch = move || {
            if signals.forever().next().is_some() {
                thread::sleep(PATIENCE);
                for process in processes.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                    // They have not been waited for, so no other process has their numbers.
                    Family::of(*process).kill();
                }
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(watch).doing(doing)?;
        Ok(interrupt)
    }

    /// Returns an error once a signal has been caught.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.is_caught() {
            return Err(Error::Peer("interrupted".to_owned()));
        }
        Ok(())
    }

    pub(super) fn is_caught(&self) -> bool {
        self.caught.load(Ordering::Relaxed)
    }

    /// Adds a process of the measurement.
    pub(super) fn add(&self, process: Pid) {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).push(process);
    }

    /// Removes a process before it is waited for.
    pub(super) fn remove(&self, process: Pid) {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.retain(|other| *other != process);
    }
}
