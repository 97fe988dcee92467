//! One-way calls: requests whose answers are not waited for.

use crate::message::Request;
use crate::status::Status;
use crate::typed::Service;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use tokio::sync::Semaphore;

/// Sends requests whose answers are not waited for, and counts how they end.
///
/// A notification is a call: the server executes it at most once, its answer is an empty message, and it obeys the same deadlines.
/// [`Notifications::send`] returns when it is on its way. If [as many as the limit](Notifications::new) are outstanding, it
/// waits first, so that a slow server slows its clients down.
///
/// A clone is cheap and shares limit and counts.
#[derive(Clone)]
pub struct Notifications {
    shared: Arc<Shared>,
}

struct Shared {
    limit: u32,
    room: Arc<Semaphore>,
    sent: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
}

/// How many notifications were sent, and how they have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotificationCounts {
    /// Those that [`Notifications::send`] has sent.
    pub sent: u64,
    /// Those that the server has executed and answered.
    pub answered: u64,
    /// Those that have failed, executed or not.
    pub failed: u64,
}

impl NotificationCounts {
    /// Returns the number of notifications that have not ended.
    #[must_use]
    pub const fn outstanding(&self) -> u64 {
        self.sent.saturating_sub(self.answered.saturating_add(self.failed))
    }
}

impl Notifications {
    /// Default of the limit: 1,000. Chosen by us: a tenth of the calls that a server runs at a time.
    pub const LIMIT: u32 = 1_000;

    /// Returns a sender that has at most `limit` notifications outstanding, and at least one.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        let limit = limit.max(1);
        let shared = Shared {
            limit,
            room: Arc::new(Semaphore::new(limit as usize)),
            sent: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Sends a request through `service`, a [`Channel`](crate::Channel) or layers around one, and returns without waiting for
    /// the answer. If the future is dropped before it is ready, nothing was sent or the call is cancelled.
    ///
    /// # Errors
    ///
    /// [`Status`]: the request could not be sent. What fails later is counted.
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

    /// Returns how many notifications were sent, and how they have ended.
    #[must_use]
    pub fn counts(&self) -> NotificationCounts {
        // The ends first: what ends meanwhile counts as outstanding, never twice.
        let answered = self.shared.answered.load(Ordering::Relaxed);
        let failed = self.shared.failed.load(Ordering::Relaxed);
        NotificationCounts { sent: self.shared.sent.load(Ordering::Relaxed), answered, failed }
    }

    /// Waits until no notification is outstanding, for example before the end of the process.
    pub async fn ended(&self) {
        // Never closed; all of the room is free when none is outstanding.
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
