//! Ranges of one file that owners have locked.

use crate::wire::{LockKind, LockRange};

/// A range that an owner has locked, or requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HeldLock<H> {
    pub(crate) holder: H,
    pub(crate) kind: LockKind,
    pub(crate) range: LockRange,
}

/// Replaces an owner's locks in a range.
pub(crate) fn replace<H: Copy + PartialEq>(locks: &mut Vec<HeldLock<H>>, wanted: HeldLock<H>) {
    let HeldLock { holder, kind, range } = wanted;
    let mut union = range;
    let mut kept = Vec::with_capacity(locks.len() + 2);
    for held in locks.drain(..) {
        let (start, end) = (held.range.start, held.range.end);
        let touches = start <= union.end.saturating_add(1) && union.start <= end.saturating_add(1);
        if held.holder != holder {
            kept.push(held);
        } else if held.kind == kind && touches {
            union = LockRange { start: union.start.min(start), end: union.end.max(end) };
        } else if end < range.start || range.end < start {
            kept.push(held);
        } else {
            // `start` and `end` beyond the range, so neither subtraction nor addition overflows.
            if start < range.start {
                kept.push(HeldLock { range: LockRange { start, end: range.start - 1 }, ..held });
            }
            if end > range.end {
                kept.push(HeldLock { range: LockRange { start: range.end + 1, end }, ..held });
            }
        }
    }
    if kind != LockKind::Unlock {
        kept.push(HeldLock { range: union, ..wanted });
    }
    *locks = kept;
}
