//! Corks, tasks that send for others, and the messages over the network that are held back.

#[cfg(feature = "tokio")]
use crate::engine::handoff::TaskPlace;
use apus_proto::Instant;
use std::time::Duration;

/// Largest number of messages that are held back: half of what one send carries, so that the peer
/// starts to work earlier.
const MAX_HELD_BACK: u32 = 32;

/// Longest wait of a message for the task that sends, while other tasks of the thread send more.
/// Chosen by us: several times the duration of a system call.
const MAX_DEFERRAL: Duration = Duration::from_micros(20);

/// The number of corks, and of messages over the network that were held back since the last
/// transmission: by a cork, because the backlog is too long, or for the task that runs the loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CorkState {
    corks: u32,
    held_back: u32,
    /// When the first of them was held back.
    since: Instant,
    /// Place of the next run of the loop's task, which sends held-back messages; `None` if there is
    /// no such task, or it sleeps.
    #[cfg(feature = "tokio")]
    sender: Option<TaskPlace>,
}

impl Default for CorkState {
    fn default() -> Self {
        Self {
            corks: 0,
            held_back: 0,
            since: Instant::ZERO,
            #[cfg(feature = "tokio")]
            sender: None,
        }
    }
}

impl CorkState {
    /// Adds a cork.
    pub(crate) const fn insert(&mut self) {
        self.corks += 1;
    }

    /// Removes a cork.
    pub(crate) const fn remove(&mut self) {
        self.corks -= 1;
    }

    /// Returns whether there is a cork.
    pub(crate) const fn is_corked(&self) -> bool {
        self.corks > 0
    }

    /// Sets where the task of the loop runs next; `None` before it sleeps.
    #[cfg(feature = "tokio")]
    pub(crate) const fn set_sender(&mut self, place: Option<TaskPlace>) {
        self.sender = place;
    }

    /// Returns whether the calling task's runtime is about to run, on this thread, the task that
    /// sends held-back messages.
    #[cfg(feature = "tokio")]
    pub(crate) fn is_deferred(&self) -> bool {
        self.sender.is_some_and(|sender| sender.is_current())
    }

    /// Returns `false`: no task runs the loop.
    #[cfg(not(feature = "tokio"))]
    pub(crate) const fn is_deferred(&self) -> bool {
        let Self { .. } = self;
        false
    }

    /// Counts a message that is held back. Returns whether it is time to send.
    #[must_use]
    pub(crate) fn hold_back(&mut self, now: Instant) -> bool {
        if self.held_back == 0 {
            self.since = now;
        }
        self.held_back += 1;
        let is_late = self.corks == 0 && self.is_deferred() && now - self.since > MAX_DEFERRAL;
        self.held_back >= MAX_HELD_BACK || is_late
    }

    /// Returns whether messages are held back.
    pub(crate) const fn holds_messages(&self) -> bool {
        self.held_back > 0
    }

    /// Notes that everything is sent.
    pub(crate) const fn clear_held_back(&mut self) {
        self.held_back = 0;
    }
}
