//! Is there something to do for a pair, as far as one sees without a lock?
//!
//! Whoever receives from many pairs looks at each of them in each pass, mostly in vain. Such a look takes no lock
//! and touches four cache lines: two of these and the first words of the two records that come next.
//!
//! What stands here is written by whoever holds the lock of a half, when it changes, and read without. A stale look
//! is wrong for a moment and no longer: it costs a pass under the locks, or puts one off. Nobody sleeps on it; whoever
//! is about to looks under the locks ([`super::link`]).

use crate::inbox::Inbox;
use crate::layout::{Lane, RingSizes, place};
use crate::memory::Memory;
use crate::sync::{AtomicBool, AtomicU32, Ordering};
use apus_wire::Role;

/// What a look needs: one cache line that whoever receives writes, and one that hardly ever changes, at which senders
/// look, too.
pub(crate) struct Glance {
    reader: Reader,
    pub(crate) state: State,
}

#[repr(align(64))]
struct Reader {
    memory: Memory,
    /// Where the first words of the next records of both lanes will lie.
    short: AtomicU32,
    bulk: AtomicU32,
    /// Whether records were taken since the peer was last told that there is room.
    owes: AtomicBool,
    /// Whether a message has come in part.
    midway: AtomicBool,
}

/// How the pair is.
#[repr(align(64))]
pub(crate) struct State {
    /// Why the link has ended, as a number; 0 while it lives.
    pub(crate) gone: AtomicU32,
    /// What the sending half waits for: 0 for nothing, 1 for room, or [`CLOGGED`].
    pub(crate) wants: AtomicU32,
    /// Nothing more will come.
    pub(crate) hung_up: AtomicBool,
}

/// The sending half has so many words for a peer which does not read that nothing more is taken from it.
pub(crate) const CLOGGED: u32 = 2;

impl Glance {
    /// That of `role` into a memory whose rings have not been read yet.
    pub(crate) fn new(memory: Memory, sizes: RingSizes, role: Role) -> Self {
        let first = |lane| AtomicU32::new(place(sizes, role.peer(), lane).data as u32);
        Self {
            reader: Reader {
                memory,
                short: first(Lane::Short),
                bulk: first(Lane::Bulk),
                owes: AtomicBool::new(false),
                midway: AtomicBool::new(false),
            },
            state: State {
                gone: AtomicU32::new(0),
                wants: AtomicU32::new(0),
                hung_up: AtomicBool::new(false),
            },
        }
    }

    fn has_record(&self, next: &AtomicU32) -> bool {
        let at = next.load(Ordering::Relaxed) as usize;
        self.reader.memory.word(at).load(Ordering::Relaxed) != 0
    }

    /// Whether there is a record, or the end.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.has_record(&self.reader.short)
            || self.has_record(&self.reader.bulk)
            || self.state.gone.load(Ordering::Relaxed) != 0
            || self.state.hung_up.load(Ordering::Relaxed)
    }

    /// Whether a pass under the locks would find anything, or has to look for room.
    #[inline]
    pub(crate) fn is_worth_a_pass(&self) -> bool {
        self.has_news() || self.state.wants.load(Ordering::Relaxed) != 0
    }

    /// Whether a message has come in part, or has left in part.
    #[inline]
    pub(crate) fn is_midway(&self) -> bool {
        let midway = self.reader.midway.load(Ordering::Relaxed)
            || self.state.wants.load(Ordering::Relaxed) != 0;
        midway && self.state.gone.load(Ordering::Relaxed) == 0
    }

    /// Whether there is a record of a long message.
    #[inline]
    pub(crate) fn has_chunk(&self) -> bool {
        self.has_record(&self.reader.bulk)
    }

    /// Records were taken. Under the lock of the receiving half.
    #[inline]
    pub(crate) fn note(&self, inbox: &Inbox) {
        let [short, bulk] = inbox.next_words();
        self.reader.short.store(short as u32, Ordering::Relaxed);
        self.reader.bulk.store(bulk as u32, Ordering::Relaxed);
        self.reader.midway.store(inbox.is_midway(), Ordering::Relaxed);
        // What was read before is to be seen by whoever tells the peer.
        self.reader.owes.store(true, Ordering::Release);
    }

    /// Whether the peer must be told that there is room.
    #[inline]
    pub(crate) fn has_debt(&self) -> bool {
        self.reader.owes.load(Ordering::Relaxed)
    }

    /// The same; says so once.
    #[inline]
    pub(crate) fn take_debt(&self) -> bool {
        self.has_debt() && self.reader.owes.swap(false, Ordering::Acquire)
    }
}
