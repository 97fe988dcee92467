//! The layout of the page, and the lines on it.
//!
//! ```text
//! word 0       time at which the interface's queue will be empty
//! word 1       number of lines ever used: later ones are empty
//! line N       128 bytes from 128 * (N + 1) on: owner, last pass, granted bytes, four words of active messages,
//!              four of arriving lengths, and arrivals per second: unscheduled bytes, all bytes, messages
//! ```
//!
//! # Invariants
//!
//! - **LINE-1** If several transports claim a line at once, exactly one gets it. A claim swaps the
//!   time of the last pass, and fails if another transport has changed it since it was read.
//! - **LINE-2** A former owner that leaves does not modify the values of the current owner.
//! - **LINE-3** What several transports give the interface at once is all in its queue.
//!
//! The three are model-checked with loom (`model`).

use crate::sync::{AtomicU64, Ordering, Page};
use apus_proto::{ArrivingLengths, Instant};

/// Bytes of a line: two cache lines, which processors fetch together.
const LINE: usize = 128;

/// Lines of a page. Chosen by us: with more transports that are busy at once, the part of each
/// would be smaller than a packet anyway. A model has two, for two transports.
pub(super) const LINES: usize = if cfg!(apus_hostgroup_loom) { 2 } else { 63 };

/// Bytes of the page.
pub(super) const PAGE: usize = LINE * (LINES + 1);

/// Active messages that a transport publishes, the shortest ones: two in a word.
pub(super) const MAX_ACTIVE: usize = 8;

/// Time after its last pass for which a line counts, in nanoseconds. Chosen by us: a process that
/// has died gives its share back within a second.
pub(super) const COUNTS_FOR: u64 = 500_000_000;

/// Time after its last pass for which a line belongs to its owner, in nanoseconds. Chosen by us: a
/// transport that was idle for this long takes another line as easily.
pub(super) const OWNED_FOR: u64 = 10_000_000_000;

/// Bound on the interface's queue in nanoseconds. Chosen by us: no interface holds one second of
/// traffic; a longer queue was written by a faulty or hostile process.
const MAX_QUEUE: u64 = 1_000_000_000;

/// A line of a page.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// A random number that its last owner has drawn.
    pub(super) owner: &'a AtomicU64,
    /// Time of the owner's last pass, in nanoseconds; 0 if the line is free.
    passed_at: &'a AtomicU64,
    incoming: &'a AtomicU64,
    active: [&'a AtomicU64; MAX_ACTIVE / 2],
    eighths: [&'a AtomicU64; 4],
    unscheduled: &'a AtomicU64,
    total: &'a AtomicU64,
    messages: &'a AtomicU64,
}

impl<'a> Line<'a> {
    /// Returns the line with this index.
    pub(super) fn of(page: &'a Page, index: usize) -> Self {
        let at = |word: usize| page.word(LINE * (index + 1) + 8 * word);
        Self {
            owner: at(0),
            passed_at: at(1),
            incoming: at(2),
            active: std::array::from_fn(|index| at(3 + index)),
            eighths: std::array::from_fn(|index| at(7 + index)),
            unscheduled: at(11),
            total: at(12),
            messages: at(13),
        }
    }

    /// Returns the lines of `page` that have been used.
    pub(super) fn used(page: &'a Page) -> impl Iterator<Item = (usize, Self)> {
        let used = page.word(8).load(Ordering::Relaxed).min(LINES as u64) as usize;
        (0..used).map(|index| (index, Self::of(page, index)))
    }

    /// Takes the first free line of `page` for `owner`, or one whose owner has not passed for long.
    /// Returns its index.
    pub(super) fn take(page: &'a Page, owner: u64, now: u64) -> Option<usize> {
        (0..LINES).find(|index| {
            let line = Self::of(page, *index);
            let before = line.passed_at.load(Ordering::Relaxed);
            let is_free = before == 0 || before.abs_diff(now) > OWNED_FOR;
            let (ok, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            let taken = is_free && line.passed_at.compare_exchange(before, now, ok, failed).is_ok();
            if taken {
                line.owner.store(owner, Ordering::Relaxed);
                line.publish(now, 0, &[]);
                line.publish_lengths(&ArrivingLengths::default());
                page.word(8).fetch_max(*index as u64 + 1, Ordering::Relaxed);
            }
            taken
        })
    }

    /// Gives the line back, unless another transport has taken it since its owner passed at
    /// `passed_at`.
    pub(super) fn give_back(self, passed_at: u64) {
        // Another one has it if this fails (LINE-2).
        let _ = self.passed_at.compare_exchange(passed_at, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Publishes the link use of its owner.
    pub(super) fn publish(self, now: u64, incoming: u64, active: &[u32]) {
        self.passed_at.store(now, Ordering::Relaxed);
        if self.incoming.load(Ordering::Relaxed) != incoming {
            self.incoming.store(incoming, Ordering::Relaxed);
        }
        let at = |index: usize| u64::from(active.get(index).copied().unwrap_or(0));
        for (index, word) in self.active.into_iter().enumerate() {
            let both = at(2 * index) | at(2 * index + 1) << 32;
            if word.load(Ordering::Relaxed) != both {
                word.store(both, Ordering::Relaxed);
            }
        }
    }

    /// Publishes the lengths arriving at its owner.
    pub(super) fn publish_lengths(self, lengths: &ArrivingLengths) {
        for (word, two) in self.eighths.into_iter().zip(lengths.eighths.chunks_exact(2)) {
            word.store(u64::from(two[0]) | u64::from(two[1]) << 32, Ordering::Relaxed);
        }
        self.unscheduled.store(lengths.unscheduled, Ordering::Relaxed);
        self.total.store(lengths.total, Ordering::Relaxed);
        self.messages.store(lengths.messages, Ordering::Relaxed);
    }

    /// Returns the lengths arriving at its owner.
    pub(super) fn lengths(self) -> ArrivingLengths {
        let mut eighths = [0; 8];
        for (two, word) in eighths.chunks_exact_mut(2).zip(self.eighths) {
            let word = word.load(Ordering::Relaxed);
            two.copy_from_slice(&[word as u32, (word >> 32) as u32]);
        }
        ArrivingLengths {
            eighths,
            unscheduled: self.unscheduled.load(Ordering::Relaxed),
            total: self.total.load(Ordering::Relaxed),
            messages: self.messages.load(Ordering::Relaxed),
        }
    }

    /// Returns whether the owner has passed within the last half second. Clocks of other time
    /// namespaces differ, in either direction.
    pub(super) fn counts(self, now: u64) -> bool {
        let passed_at = self.passed_at.load(Ordering::Relaxed);
        passed_at != 0 && passed_at.abs_diff(now) <= COUNTS_FOR
    }

    /// Returns the bytes that the owner has granted and not received.
    pub(super) fn incoming(self) -> u64 {
        self.incoming.load(Ordering::Relaxed)
    }

    /// Returns the bytes that the owner's active messages lack.
    pub(super) fn active(self) -> impl Iterator<Item = u32> {
        let words = self.active.map(|word| word.load(Ordering::Relaxed));
        let halves = words.into_iter().flat_map(|word| [word as u32, (word >> 32) as u32]);
        halves.take_while(|missing| *missing > 0)
    }
}

/// Adds `nanos` of the link's time to the interface's queue.
pub(super) fn add_to_queue(page: &Page, now: u64, nanos: u64) {
    let later = |idle_at: u64| Some(queue_end(idle_at, now).saturating_add(nanos));
    // The closure always has a value.
    let _ = page.word(0).fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
}

/// Returns when the interface will have sent all that it was given.
pub(super) fn link_idle_at(page: &Page, now: u64) -> Instant {
    Instant::from_nanos(queue_end(page.word(0).load(Ordering::Relaxed), now))
}

/// Returns the end of the queue if `idle_at` is a possible one, and else `now`.
fn queue_end(idle_at: u64, now: u64) -> u64 {
    if idle_at > now && idle_at - now <= MAX_QUEUE { idle_at } else { now }
}
