//! The bytes of a message that are sent again.

use crate::limits::MAX_RESEND_BURST;
use crate::ranges::Ranges;
use crate::time::Instant;
use std::ops::Range;

/// Retransmissions that a message remembers. Chosen by us: as many as one burst of RESENDs asks for. What is forgotten
/// can be asked for again at once.
const MAX_RECENT: usize = MAX_RESEND_BURST as usize;

/// What waits to be sent again, and what was sent again lately.
#[derive(Debug, Default)]
pub(super) struct Retransmission {
    /// Bytes to be sent again.
    wanted: Ranges,
    /// Bytes that were sent again, and when, the oldest first; at most [`MAX_RECENT`].
    recent: Vec<(Range<u64>, Instant)>,
    /// Level that the last RESEND asked for.
    pub(super) priority: u8,
}

impl Retransmission {
    /// Adds `range`, except for what was sent again at an instant for which `on_its_way` holds. Returns whether anything
    /// is left of it.
    pub(super) fn add(&mut self, range: Range<u32>, on_its_way: impl Fn(Instant) -> bool) -> bool {
        self.recent.retain(|(_, at)| on_its_way(*at));
        let mut lost = Ranges::default();
        lost.insert(u64::from(range.start)..u64::from(range.end));
        for (range, _) in &self.recent {
            lost.remove(range.clone());
        }
        for range in lost.iter() {
            self.wanted.insert(range);
        }
        !lost.is_empty()
    }

    /// The first range that waits.
    pub(super) fn first(&self) -> Option<Range<u32>> {
        self.wanted.first().map(|range| range.start as u32..range.end as u32)
    }

    /// Takes the bytes below `end`, which leave now.
    pub(super) fn take_below(&mut self, end: u32) {
        self.wanted.remove_below(u64::from(end));
    }

    /// Notes that `range` was sent again at `now`.
    pub(super) fn note_sent(&mut self, range: &Range<u32>, now: Instant) {
        if self.recent.len() == MAX_RECENT {
            self.recent.remove(0);
        }
        self.recent.push((u64::from(range.start)..u64::from(range.end), now));
    }

    /// Number of bytes that wait.
    pub(super) fn bytes(&self) -> u32 {
        self.wanted.sum() as u32
    }
}
