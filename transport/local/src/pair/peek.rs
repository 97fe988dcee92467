//! Peeking at a pair without a lock: whether a pass under its locks would find something to do.
//!
//! A receiver of many pairs checks each of them in every pass, mostly without success. A check
//! takes no lock and touches four cache lines: two of this structure, and the first words of the
//! two next records.
//!
//! These values are hints. The holder of a half's lock writes them when they change; readers load
//! them without a lock. A stale value costs a pass under the locks, or delays one. No thread falls
//! asleep because of it: before a thread sleeps, it checks under the locks ([`super::link`]).

use super::inbox::Inbox;
use crate::memory::Memory;
use crate::memory::layout::{Lane, RingSizes, ring_layout};
use crate::sync::{AtomicBool, AtomicU32, Ordering};
use apus_wire::Role;

/// Hints: one cache line that the receiver writes, and one that rarely changes and that senders
/// also read.
pub(crate) struct Peek {
    reader: ReaderHints,
    pub(crate) state: LinkState,
}

#[repr(align(64))]
struct ReaderHints {
    memory: Memory,
    /// Offsets of the first words of the next records of both lanes.
    short: AtomicU32,
    bulk: AtomicU32,
    /// Whether records were consumed since room was last reported to the peer.
    unreported_room: AtomicBool,
    /// Whether a message has arrived in part.
    partial: AtomicBool,
}

/// State of the link.
#[repr(align(64))]
pub(crate) struct LinkState {
    /// Why the link has ended, as a number; 0 while it is open.
    pub(crate) ended: AtomicU32,
    /// Room that the sending half waits for: 0 if it does not wait, 1 for room, or [`STALLED`].
    pub(crate) wanted: AtomicU32,
    /// Whether the peer will write no more.
    pub(crate) hung_up: AtomicBool,
}

/// Value of `wanted`: the control records that wait for the peer have reached their limit, and
/// reception has stopped.
pub(crate) const STALLED: u32 = 2;

impl Peek {
    /// Returns the hints of `role` for a memory whose rings have not been read yet.
    pub(crate) fn new(memory: Memory, sizes: RingSizes, role: Role) -> Self {
        let first = |lane| AtomicU32::new(ring_layout(sizes, role.peer(), lane).data as u32);
        Self {
            reader: ReaderHints {
                memory,
                short: first(Lane::Short),
                bulk: first(Lane::Bulk),
                unreported_room: AtomicBool::new(false),
                partial: AtomicBool::new(false),
            },
            state: LinkState {
                ended: AtomicU32::new(0),
                wanted: AtomicU32::new(0),
                hung_up: AtomicBool::new(false),
            },
        }
    }

    fn has_record(&self, next: &AtomicU32) -> bool {
        let at = next.load(Ordering::Relaxed) as usize;
        self.reader.memory.word(at).load(Ordering::Relaxed) != 0
    }

    /// Returns whether a record is visible or the link has ended.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.has_record(&self.reader.short)
            || self.has_record(&self.reader.bulk)
            || self.state.ended.load(Ordering::Relaxed) != 0
            || self.state.hung_up.load(Ordering::Relaxed)
    }

    /// Returns whether a pass under the locks would find something, or has to check for room.
    #[inline]
    pub(crate) fn is_worth_a_pass(&self) -> bool {
        self.has_news() || self.state.wanted.load(Ordering::Relaxed) != 0
    }

    /// Returns whether a message has arrived in part or was sent in part.
    #[inline]
    pub(crate) fn has_partial_message(&self) -> bool {
        let partial = self.reader.partial.load(Ordering::Relaxed)
            || self.state.wanted.load(Ordering::Relaxed) != 0;
        partial && self.state.ended.load(Ordering::Relaxed) == 0
    }

    /// Returns whether a record of a long message is visible.
    #[inline]
    pub(crate) fn has_chunk(&self) -> bool {
        self.has_record(&self.reader.bulk)
    }

    /// Publishes that records were consumed. The caller holds the lock of the receiving half.
    #[inline]
    pub(crate) fn publish(&self, inbox: &Inbox) {
        let [short, bulk] = inbox.next_words();
        self.reader.short.store(short as u32, Ordering::Relaxed);
        self.reader.bulk.store(bulk as u32, Ordering::Relaxed);
        self.reader.partial.store(inbox.has_partial_message(), Ordering::Relaxed);
        // Release: the thread that reports the room must see all earlier reads.
        self.reader.unreported_room.store(true, Ordering::Release);
    }

    /// Returns whether room must be reported to the peer.
    #[inline]
    pub(crate) fn has_unreported_room(&self) -> bool {
        self.reader.unreported_room.load(Ordering::Relaxed)
    }

    /// Returns whether room must be reported to the peer, and resets the flag: one caller gets
    /// `true`.
    #[inline]
    pub(crate) fn take_unreported_room(&self) -> bool {
        self.has_unreported_room() && self.reader.unreported_room.swap(false, Ordering::Acquire)
    }
}
