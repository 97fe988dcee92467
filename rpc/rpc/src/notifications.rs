//! Notifications: one-way calls that do not wait for the response.

use crate::message::Request;
use crate::status::Status;
use crate::typed::Service;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use tokio::sync::Semaphore;

/// Sends requests without waiting for their responses, and counts their outcomes.
///
/// A notification is a call: the server executes it at most once, its response is an empty message,
/// and it obeys the same deadlines. [`Notifications::send`] returns when the request has been sent.
/// While the [limit](Notifications::new) of outstanding notifications is reached, it waits first,
/// so that a slow server slows down its clients.
///
/// Clones are cheap and share limit and counts.
#[derive(Clone)]
pub struct Notifications {
    shared: Arc<NotificationState>,
}

struct NotificationState {
    limit: u32,
    room: Arc<Semaphore>,
    sent: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
}

/// Counts of notifications and their outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotificationCounts {
    /// Notifications sent by [`Notifications::send`].
    pub sent: u64,
    /// Notifications executed and answered by the server.
    pub answered: u64,
    /// Notifications that failed, executed or not.
    pub failed: u64,
}

impl NotificationCounts {
    /// Returns the number of outstanding notifications.
    #[must_use]
    pub const fn outstanding(&self) -> u64 {
        self.sent.saturating_sub(self.answered.saturating_add(self.failed))
    }
}

impl Notifications {
    /// Default of the limit: 1,000. Chosen by us: a tenth of the calls that a server runs
    /// concurrently.
    pub const LIMIT: u32 = 1_000;

    /// Creates a sender with a limit of outstanding notifications; a limit of 0 counts as 1.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        let limit = limit.max(1);
        let shared = NotificationState {
            limit,
            room: Arc::new(Semaphore::new(limit as usize)),
            sent: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Sends a request through `service`, a [`Channel`](crate::Channel) or layers around one, and
    /// returns without waiting for the response. If the future is dropped before it is ready, the
    /// request is not sent or the call is cancelled.
    ///
    /// # Errors
    ///
    /// [`Status`]: the request could not be sent. Later failures are counted.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub async fn send<S: Service>(&self, service: &S, request: Request) -> Result<(), Status> {
        let (shared, mut service) = (self.shared.clone(), service.clone());
        // Never closed.
        let room = shared.room.clone().acquire_owned().await.ok();
        std::future::poll_fn(|cx| service.poll_ready(cx)).await?;
        let mut call = Box::pin(service.call(request));
        // In this task, so that the call inherits its context.
        let polled = std::future::poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await;
        match polled {
            Poll::Ready(Err(status)) => return Err(status),
            Poll::Ready(Ok(_)) => {
                shared.sent.fetch_add(1, Ordering::Relaxed);
                shared.answered.fetch_add(1, Ordering::Relaxed);
            }
            Poll::Pending => {
                shared.sent.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    let end = if call.await.is_ok() { &shared.answered } else { &shared.failed };
                    end.fetch_add(1, Ordering::Relaxed);
                    drop(room);
                });
            }
        }
        Ok(())
    }

    /// Returns the counts of notifications and their outcomes.
    #[must_use]
    pub fn counts(&self) -> NotificationCounts {
        // Outcomes are read first, so a notification that ends in between counts as outstanding,
        // never twice.
        let answered = self.shared.answered.load(Ordering::Relaxed);
        let failed = self.shared.failed.load(Ordering::Relaxed);
        NotificationCounts { sent: self.shared.sent.load(Ordering::Relaxed), answered, failed }
    }

    /// Waits until no notification is outstanding, for example before the process ends.
    pub async fn ended(&self) {
        // Never closed; all permits are free when no notification is outstanding.
        let _all = self.shared.room.acquire_many(self.shared.limit).await;
    }
}

impl Default for Notifications {
    fn default() -> Self {
        Self::new(Self::LIMIT)
    }
}

impl fmt::Debug for Notifications {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notifications").field("counts", &self.counts()).finish_non_exhaustive()
    }
}
