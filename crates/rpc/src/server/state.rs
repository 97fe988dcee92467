//! What a server is doing: the calls that run, and whether new ones are accepted.

use super::health::Health;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// The state of a server, shared by its workers and controls.
pub(super) struct State {
    health: AtomicU8,
    running: AtomicUsize,
    max_running: usize,
    idle: Notify,
}

/// A call that runs.
pub(super) struct Running<'a>(&'a State);

impl State {
    pub(super) fn new(max_running: usize) -> Self {
        let health = AtomicU8::new(Health::Ready.number());
        Self { health, running: AtomicUsize::new(0), max_running, idle: Notify::new() }
    }

    pub(super) fn health(&self) -> Health {
        Health::from_number(self.health.load(Ordering::Relaxed))
    }

    pub(super) fn set_health(&self, health: Health) {
        self.health.store(health.number(), Ordering::Relaxed);
    }

    /// Counts a call, unless too many run.
    pub(super) fn begin(&self) -> Option<Running<'_>> {
        let before = self.running.fetch_add(1, Ordering::AcqRel);
        let running = Running(self);
        (before < self.max_running).then_some(running)
    }

    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::Acquire)
    }

    /// Waits until no call runs.
    pub(super) async fn idle(&self) {
        loop {
            let notified = self.idle.notified();
            if self.running() == 0 {
                return;
            }
            notified.await;
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}
