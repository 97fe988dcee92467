//! State shared by both halves of an association.

use crate::cipher::{KeySchedule, PacketCipher};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The sealer publishes its last number with each of the first `NOTED` packets, and then once per
/// `NOTED`.
pub(super) const NOTED: u64 = 1024;

/// A packet has been opened since [`Phases::take_used`].
const USED: u8 = 1;

/// A packet has been opened since [`Phases::take_heard`].
const HEARD: u8 = 2;

/// Both marks.
const ALL: u8 = USED | HEARD;

/// The highest generation opened so far, and the sealing keys of later generations.
#[derive(Debug)]
pub struct Phases {
    schedule: Mutex<Schedule>,
    /// The highest generation opened so far.
    opened: AtomicU32,
    /// Whether this end starts generations.
    begins: bool,
    /// Whether the peer's key is due for replacement.
    is_worn: AtomicBool,
    /// The marks of [`ALL`] that are set.
    has_opened: AtomicU8,
    /// The last sealed number, to within [`NOTED`].
    sealed: AtomicU64,
}

#[derive(Debug)]
struct Schedule {
    source: Box<dyn KeySchedule>,
    /// Sealing keys of generations that the sealer has not started.
    local: VecDeque<Box<dyn PacketCipher>>,
}

impl Phases {
    pub(super) fn new(source: Box<dyn KeySchedule>, begins: bool) -> Self {
        let schedule = Schedule { source, local: VecDeque::new() };
        Self {
            schedule: Mutex::new(schedule),
            opened: AtomicU32::new(0),
            begins,
            is_worn: AtomicBool::new(false),
            has_opened: AtomicU8::new(ALL),
            sealed: AtomicU64::new(0),
        }
    }

    /// Derives the next generation. Returns its opening key and keeps its sealing key.
    pub(super) fn next_remote(&self) -> Box<dyn PacketCipher> {
        let mut schedule = self.schedule.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = schedule.source.next_keys();
        schedule.local.push_back(keys.local);
        keys.remote
    }

    /// Takes the sealing key of the generation after the sealer's.
    pub(super) fn take_local(&self) -> Option<Box<dyn PacketCipher>> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner).local.pop_front()
    }

    pub(super) fn note_opened(&self, generation: u32) {
        self.opened.store(generation, Ordering::Release);
    }

    pub(super) fn opened(&self) -> u32 {
        self.opened.load(Ordering::Acquire)
    }

    /// Returns whether this end starts generations.
    pub(super) const fn begins(&self) -> bool {
        self.begins
    }

    /// Records that the peer's present key is due for replacement.
    pub(super) fn note_worn(&self) {
        self.is_worn.store(true, Ordering::Relaxed);
    }

    /// Returns whether the peer's present key is due for replacement, and clears that mark.
    pub(super) fn take_worn(&self) -> bool {
        self.is_worn.load(Ordering::Relaxed) && self.is_worn.swap(false, Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn note_used(&self) {
        if self.has_opened.load(Ordering::Relaxed) != ALL {
            self.has_opened.store(ALL, Ordering::Relaxed);
        }
    }

    /// Returns whether a packet has been opened since the last call.
    pub fn take_used(&self) -> bool {
        self.has_opened.fetch_and(!USED, Ordering::Relaxed) & USED != 0
    }

    /// Returns whether a packet has been opened since the last call.
    pub fn take_heard(&self) -> bool {
        self.has_opened.fetch_and(!HEARD, Ordering::Relaxed) & HEARD != 0
    }

    pub(super) fn note_sealed(&self, number: u64) {
        self.sealed.store(number, Ordering::Relaxed);
    }

    /// Returns whether a packet with this number may have been sealed. The answer is exact for the
    /// first `NOTED` packets, since packets of the previous keys are still in flight while keys are
    /// new; later it is exact to within `NOTED`.
    #[must_use]
    pub fn may_have_sealed(&self, number: u64) -> bool {
        let last = self.sealed.load(Ordering::Relaxed);
        number > 0 && number <= if last < NOTED { last } else { last + NOTED }
    }
}
