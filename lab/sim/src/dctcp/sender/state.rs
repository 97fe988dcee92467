//! States of the sending half.

use crate::dctcp::segment::Position;

/// State of the sender. The state ends when its position is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Normal operation (`TCP_CA_Open`, `TCP_CA_Disorder`, which differ only in Linux's counters).
    Open,
    /// Marks reduce the window, once for each window of data (`TCP_CA_CWR`).
    Reducing(Position),
    /// Lost segments are retransmitted (`TCP_CA_Recovery`).
    Recovery(Position),
    /// A retransmission timeout has expired (`TCP_CA_Loss`).
    Loss(Position),
}

impl State {
    /// Returns whether a reduction governs the window.
    pub(super) const fn is_reducing(self) -> bool {
        matches!(self, Self::Reducing(_) | Self::Recovery(_))
    }

    /// Returns whether lost segments are being repaired.
    pub(super) const fn is_recovering(self) -> bool {
        matches!(self, Self::Recovery(_) | Self::Loss(_))
    }
}

/// Result of `Sender::react`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Findings {
    /// Segments newly marked as lost.
    pub(super) lost: u32,
    /// Whether the timer waits for overtaken segments.
    pub(super) waiting: bool,
}

/// Verification of the losses of a recovery. Source: Linux, `undo_marker` and `undo_retrans`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// Start of the last recovery. Its proof may arrive after it has ended; a new reduction
    /// discards it.
    from: Option<Position>,
    /// Retransmitted segments that have not been reported as duplicates.
    open: u32,
    /// Whether any segment was retransmitted.
    any: bool,
}

impl Undo {
    pub(super) const fn begin(una: Position, again: u32) -> Self {
        Self { from: Some(una), open: again, any: again > 0 }
    }

    pub(super) const fn retransmitted(&mut self) {
        self.open += 1;
        self.any = true;
    }

    /// Records a duplicate segment with this end.
    pub(super) fn duplicate(&mut self, end: Position) {
        if self.from.is_some_and(|from| end > from) {
            self.open = self.open.saturating_sub(1);
        }
    }

    /// Returns whether all retransmissions were unnecessary.
    pub(super) const fn is_proven(&self) -> bool {
        self.from.is_some() && self.any && self.open == 0
    }

    /// Returns whether all retransmissions were unnecessary, at the end of the recovery: without
    /// any retransmission, there was no loss.
    pub(super) const fn is_proven_at_the_end(&self) -> bool {
        self.from.is_some() && self.open == 0
    }
}
