//! Stages: the threads of a router.

use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use super::counters::Counters;
use crate::livelock::priority::Priority;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::Stop;

/// A part of the router with its own thread.
pub(super) struct Stage {
    pub(super) thread: JoinHandle<Result<Counters, Error>>,
}

/// The signals that every stage receives and sends.
#[derive(Clone)]
pub(super) struct Signals {
    pub(super) stop: Stop,
    /// Receives a message when the stage is ready.
    pub(super) ready: Sender<()>,
}

impl Stage {
    /// Starts a stage at that priority.
    pub(super) fn start(
        name: &str,
        priority: Priority,
        signals: &Signals,
        work: impl FnOnce(&Stop) -> Result<Counters, Error> + Send + 'static,
    ) -> Result<Self, Error> {
        let Signals { stop, ready } = signals.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            priority.take()?;
            // The receiver may have timed out.
            let _ = ready.send(());
            drop(ready);
            work(&stop)
        });
        Ok(Self { thread: thread.doing(|| format!("start {name}"))? })
    }
}
