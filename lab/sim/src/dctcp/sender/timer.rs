//! The timer of the sending half, and the tail loss probe.

use crate::dctcp::segment::Position;
use apus_workload::time::Nanos;

/// Purpose of the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Probe,
    Timeout,
    Reordering,
}

/// The timer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    pub(super) kind: Kind,
    pub(super) at: Nanos,
}

/// The tail loss probe.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    /// Whether to send it as soon as the link is free.
    pub(super) due: bool,
    /// End of the stream when the probe was sent, until it is answered. At most one probe is
    /// outstanding.
    pub(super) high: Option<Position>,
    /// Whether it repeated the last segment instead of sending a new one.
    pub(super) repeated: bool,
}

impl Probe {
    pub(super) const fn is_due(&self) -> bool {
        self.due
    }

    pub(super) fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.due)
    }

    /// Cancels the transmission.
    pub(super) const fn cancel(&mut self) {
        self.due = false;
    }

    pub(super) fn repeated_what_ends_at(&self, end: Position) -> bool {
        self.repeated && self.high == Some(end)
    }
}
