//! Which segments are lost?
//!
//! Those that were sent sufficiently before one that has arrived: RACK, RFC 8985, as Linux has had it as its
//! only detection since 4.18 (`tcp_recovery` = 1). As long as no reordering has been seen, the third segment
//! beyond a gap is proof enough, as three duplicate ACKs were.

use super::rtt::Rtt;
use super::scoreboard::{News, Scoreboard, Sent};
use super::segment::Position;
use apus_workload::time::Nanos;

/// Segments beyond a gap that prove a loss where nothing is reordered. Source: RFC 5681 section 3.2.
const DUPLICATE_THRESHOLD: u32 = 3;

/// Recoveries without a duplicate after which reordering is believed to have ceased. Source: RFC 8985 section
/// 6.2 step 4.
const PERSIST: u32 = 16;

/// Most quarters of the round-trip time that reordering may take. Source: Linux, `tcp_rack_update_reo_wnd`.
const MAX_QUARTERS: u32 = 255;

/// What is known of the latest arrivals.
#[derive(Debug, Default)]
pub(super) struct Rack {
    /// When the segment was sent that was sent last of all that have arrived, and where it ends.
    at: Nanos,
    end: Position,
    /// How long it took.
    took: Nanos,
    /// Highest end of all that have arrived.
    highest: Position,
    /// Whether anything has arrived since the last look.
    fresh: bool,
    /// Whether anything was ever overtaken.
    reordered: bool,
    /// How many quarters of the least round-trip time are granted to those that were overtaken, less one.
    more_quarters: u32,
    /// Recoveries until they are no longer granted.
    persist: u32,
    /// Until this is acknowledged, further duplicates do not count.
    duplicate_round: Option<Position>,
}

impl Rack {
    /// A segment has arrived.
    pub(super) fn arrived(&mut self, segment: &Sent, now: Nanos, rtt: &Rtt) {
        let took = now - segment.at;
        if segment.ever_again && took < rtt.least() {
            return; // It was its first transmission that arrived.
        }
        self.fresh = true;
        self.took = took;
        if (segment.at, segment.end) > (self.at, self.end) {
            (self.at, self.end) = (segment.at, segment.end);
        }
    }

    /// Sees whether anything that an ACK told of had been overtaken, and how far the highest is.
    pub(super) fn note(&mut self, news: &News) {
        self.reordered |= news.lowest_once.is_some_and(|end| end < self.highest);
        self.highest = self.highest.max(news.highest);
    }

    /// Whether the path was ever seen to reorder.
    pub(super) const fn reordered(&self) -> bool {
        self.reordered
    }

    /// A segment arrived twice: what was sent again had only been late.
    pub(super) fn duplicate(&mut self, una: Position, next: Position) {
        self.reordered = true;
        if self.duplicate_round.is_none_or(|round| una >= round) {
            self.duplicate_round = Some(next);
            self.more_quarters = (self.more_quarters + 1).min(MAX_QUARTERS);
            self.persist = PERSIST;
        }
    }

    /// A recovery is over.
    pub(super) const fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.more_quarters = 0;
        }
    }

    /// How long a segment may be overtaken before it is lost.
    fn patience(&self, board: &Scoreboard, rtt: &Rtt, recovering: bool) -> Nanos {
        if !self.reordered && (recovering || board.sacked() >= DUPLICATE_THRESHOLD) {
            return 0;
        }
        (rtt.least() / 4 * Nanos::from(self.more_quarters + 1)).min(rtt.smoothed())
    }

    /// Takes segments for lost, if anything has arrived since the last look; returns how long to wait for
    /// the others that were overtaken.
    pub(super) fn look(
        &mut self,
        board: &mut Scoreboard,
        rtt: &Rtt,
        recovering: bool,
        now: Nanos,
    ) -> Option<Nanos> {
        if !std::mem::take(&mut self.fresh) {
            return None;
        }
        self.look_again(board, rtt, recovering, now)
    }

    /// The same without anything having arrived.
    pub(super) fn look_again(
        &self,
        board: &mut Scoreboard,
        rtt: &Rtt,
        recovering: bool,
        now: Nanos,
    ) -> Option<Nanos> {
        let patience = self.took + self.patience(board, rtt, recovering);
        let mut wait = None;
        let mut index = 0;
        while let Some(segment) = board.get(index).copied() {
            let overtaken = (segment.at, segment.end) < (self.at, self.end);
            if !overtaken && !segment.ever_again {
                break; // All that follow were sent later still.
            }
            if overtaken && !segment.sacked {
                let due = segment.at + patience;
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

    /// Whether a segment was sent so recently that even a retransmission timeout does not prove it lost.
    pub(super) const fn is_recent(&self, segment: &Sent, now: Nanos) -> bool {
        segment.at + self.took > now
    }
}
