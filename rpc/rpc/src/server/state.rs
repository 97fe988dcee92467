//! State of a server: the running calls, and whether new calls are accepted.

use super::health::Health;
use crate::status::Status;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The state of a server, shared by its workers and controls.
#[derive(Debug)]
pub(super) struct ServerState {
    health: AtomicU8,
    running: AtomicUsize,
    max_running: usize,
    idle: Notify,
    began: Instant,
    /// Microseconds from `began` to the last refusal because the server was not ready or draining.
    refused: AtomicU64,
    truncated_statuses: AtomicU64,
}

/// A running call.
#[derive(Debug)]
pub(super) struct Running(Arc<ServerState>);

impl ServerState {
    pub(super) fn new(max_running: usize) -> Self {
        let health = AtomicU8::new(Health::Ready.number());
        let (running, idle) = (AtomicUsize::new(0), Notify::new());
        let (refused, truncated_statuses) = (AtomicU64::new(0), AtomicU64::new(0));
        let began = Instant::now();
        Self { health, running, max_running, idle, began, refused, truncated_statuses }
    }

    /// Shortens a status that does not fit on the wire, and counts it.
    pub(super) fn shorten(&self, status: &mut Status) {
        if let Some(shortened) = status.shortened() {
            *status = shortened;
        }
        if status.is_truncated() {
            self.truncated_statuses.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn truncated_statuses(&self) -> u64 {
        self.truncated_statuses.load(Ordering::Relaxed)
    }

    pub(super) fn health(&self) -> Health {
        Health::from_number(self.health.load(Ordering::Relaxed))
    }

    pub(super) fn set_health(&self, health: Health) {
        self.health.store(health.number(), Ordering::Relaxed);
    }

    /// Records that a call was refused because the server is not ready or draining.
    pub(super) fn note_refusal(&self) {
        self.refused.store(self.now(), Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Waits until no call runs and none was refused for `period`.
    pub(super) async fn quiet(&self, period: Duration) {
        self.note_refusal();
        loop {
            self.idle().await;
            let since = self.now().saturating_sub(self.refused.load(Ordering::Relaxed));
            match period.checked_sub(Duration::from_micros(since)) {
                None | Some(Duration::ZERO) => return,
                Some(left) => tokio::time::sleep(left).await,
            }
        }
    }

    /// Counts a call, unless the limit is reached.
    pub(super) fn begin(self: &Arc<Self>) -> Option<Running> {
        let before = self.running.fetch_add(1, Ordering::AcqRel);
        let running = Running(self.clone());
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

impl Drop for Running {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}
