//! Loss detection.
//!
//! A segment is lost if it was sent sufficiently long before one that has arrived: RACK, RFC 8985,
//! the only detection in Linux since 4.18 (`tcp_recovery` = 1). Unless reordering has been seen,
//! the third segment beyond a gap is sufficient proof, as three duplicate ACKs were.

use super::rtt::Rtt;
use super::scoreboard::{NewlyAcked, Scoreboard, SentSegment};
use super::segment::Position;
use apus_workload::time::Nanos;

/// Segments beyond a gap that prove a loss on a path without reordering. Source: RFC 5681 section
/// 3.2.
const DUPLICATE_THRESHOLD: u32 = 3;

/// Reordering is considered over after this number of recoveries without a duplicate. Source: RFC
/// 8985 section 6.2 step 4.
const PERSIST: u32 = 16;

/// Longest reordering window in quarters of the round-trip time. Source: Linux,
/// `tcp_rack_update_reo_wnd`.
const MAX_QUARTERS: u32 = 255;

/// State about the latest arrivals.
#[derive(Debug, Default)]
pub(super) struct Rack {
    /// Send time and end of the last-sent segment among those that have arrived.
    at: Nanos,
    end: Position,
    /// Its round-trip time.
    took: Nanos,
    /// Highest end of all segments that have arrived.
    highest: Position,
    /// Whether a segment has arrived since the last detection.
    fresh: bool,
    /// Whether reordering was ever seen.
    reordered: bool,
    /// Size of the reordering window in quarters of the least round-trip time, less one.
    more_quarters: u32,
    /// Recoveries until the window is reset.
    persist: u32,
    /// Further duplicates do not count until this position is acknowledged.
    duplicate_round: Option<Position>,
}

impl Rack {
    /// Handles the arrival of a segment.
    pub(super) fn arrived(&mut self, segment: &SentSegment, now: Nanos, rtt: &Rtt) {
        let took = now - segment.at;
        if segment.ever_again && took < rtt.least() {
            return; // The ACK belongs to its first transmission.
        }
        self.fresh = true;
        self.took = took;
        if (segment.at, segment.end) > (self.at, self.end) {
            (self.at, self.end) = (segment.at, segment.end);
        }
    }

    /// Detects reordering in the segments of an ACK, and updates the highest end.
    pub(super) fn note(&mut self, newly_acked: &NewlyAcked) {
        self.reordered |= newly_acked.lowest_once.is_some_and(|end| end < self.highest);
        self.highest = self.highest.max(newly_acked.highest);
    }

    /// Returns whether reordering was ever seen.
    pub(super) const fn reordered(&self) -> bool {
        self.reordered
    }

    /// Handles a report of a duplicate: the retransmission was unnecessary, as the original was
    /// only late.
    pub(super) fn duplicate(&mut self, una: Position, next: Position) {
        self.reordered = true;
        if self.duplicate_round.is_none_or(|round| una >= round) {
            self.duplicate_round = Some(next);
            self.more_quarters = (self.more_quarters + 1).min(MAX_QUARTERS);
            self.persist = PERSIST;
        }
    }

    /// Handles the end of a recovery.
    pub(super) const fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.more_quarters = 0;
        }
    }

    /// Returns how long a segment may be overtaken before it counts as lost.
    fn reordering_window(&self, board: &Scoreboard, rtt: &Rtt, recovering: bool) -> Nanos {
        if !self.reordered && (recovering || board.sacked() >= DUPLICATE_THRESHOLD) {
            return 0;
        }
        (rtt.least() / 4 * Nanos::from(self.more_quarters + 1)).min(rtt.smoothed())
    }

    /// Marks segments as lost, if a segment has arrived since the last call. Returns how long to
    /// wait for other overtaken segments.
    pub(super) fn detect(
        &mut self,
        board: &mut Scoreboard,
        rtt: &Rtt,
        recovering: bool,
        now: Nanos,
    ) -> Option<Nanos> {
        if !std::mem::take(&mut self.fresh) {
            return None;
        }
        self.redetect(board, rtt, recovering, now)
    }

    /// Marks segments as lost, without an arrival. Returns how long to wait for other overtaken
    /// segments.
    pub(super) fn redetect(
        &self,
        board: &mut Scoreboard,
        rtt: &Rtt,
        recovering: bool,
        now: Nanos,
    ) -> Option<Nanos> {
        let reordering_window = self.took + self.reordering_window(board, rtt, recovering);
        let mut wait = None;
        let mut index = 0;
        while let Some(segment) = board.get(index).copied() {
            let overtaken = (segment.at, segment.end) < (self.at, self.end);
            if !overtaken && !segment.ever_again {
                break; // All following segments were sent later.
            }
            if overtaken && !segment.sacked {
                let due = segment.at + reordering_window;
                if due <= now {
                    board.lose(index);
                } else if !board.waits_for_repair(index) {
                    wait = wait.max(Some(due - now));
                }
            }
            index += 1;
        }
        wait
    }

    /// Returns whether a segment was sent so recently that even a retransmission timeout does not
    /// prove its loss.
    pub(super) const fn is_recent(&self, segment: &SentSegment, now: Nanos) -> bool {
        segment.at + self.took > now
    }
}
