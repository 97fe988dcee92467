//! Sleeping until the peer has written something, and waking a peer that sleeps.
//!
//! Each side has one word that states whether it sleeps. Before it sleeps, it announces that in the
//! word and checks the rings once more; the other side checks the word after each store. Both put a
//! full fence between their store and their load, so at least one of them sees the other.
//!
//! ```text
//!   sleeper                         waker
//!   word ← sleep mode               record, or read position, stored
//!   ── fence ──                     ── fence ──
//!   if the rings are empty:         if word is not `awake`:
//!     sleep on word                   word ← awake, wake with a system call
//! ```
//!
//! # Invariants
//!
//! - **SLEEP-1** No wake-up is lost, because of the two fences. Loom checks this (`model`).
//! - **SLEEP-2** A waker makes a system call only if the word announced a sleep, and resets the
//!   word first: one call for each sleep.
//! - **SLEEP-3** A peer that writes nonsense into these words deprives only itself of wake-ups, and
//!   this side of wake-ups by that peer. The sleep mode is read once; no call that it leads to can
//!   block (a futex wake-up, or a byte with MSG_DONTWAIT on this side's own socket).
//! - **SLEEP-4** Every write of a word is a swap with acquire and release: the side that announces
//!   sees earlier wake-ups and their causes. A plain store could come first and be seen last.

use std::time::Duration;

use crate::memory::Memory;
use crate::sync::{Ordering, fence};

/// How a side sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SleepMode {
    /// On its word, as a futex.
    Futex,
    /// On its socket, possibly together with other descriptors.
    Socket,
}

const AWAKE: u32 = 0;
const ON_FUTEX: u32 = 1;
const ON_SOCKET: u32 = 2;
/// The sleeper also waits for room in its sending rings.
const FOR_ROOM: u32 = 4;

/// This side's own word.
pub(crate) struct OwnSleep {
    memory: Memory,
    at: usize,
}

impl OwnSleep {
    pub(crate) const fn new(memory: Memory, at: usize) -> Self {
        Self { memory, at }
    }

    /// Announces that this side sleeps. The caller must check everything once more before it does.
    pub(crate) fn announce(&self, mode: SleepMode, for_room: bool) {
        let mode = match mode {
            SleepMode::Futex => ON_FUTEX,
            SleepMode::Socket => ON_SOCKET,
        };
        let value = mode | if for_room { FOR_ROOM } else { 0 };
        // SLEEP-4
        self.memory.half(self.at).swap(value, Ordering::AcqRel);
        // SLEEP-1
        fence(Ordering::SeqCst);
    }

    /// Withdraws the announcement: this side is awake.
    pub(crate) fn clear(&self) {
        self.memory.half(self.at).swap(AWAKE, Ordering::AcqRel);
    }

    /// Sleeps on the word until it is woken, for up to `time`. May return early.
    pub(crate) fn wait(&self, time: Duration) {
        let value = self.memory.half(self.at).load(Ordering::Relaxed);
        if value & !FOR_ROOM == ON_FUTEX {
            self.memory.futex_wait(self.at, value, time);
        }
    }

    /// Wakes a thread of this process that sleeps on the word. The caller has stored the cause
    /// before.
    pub(crate) fn wake(&self) {
        self.memory.half(self.at).swap(AWAKE, Ordering::AcqRel);
        self.memory.futex_wake(self.at);
    }
}

/// The word of the other side.
pub(crate) struct PeerSleep {
    memory: Memory,
    at: usize,
}

impl PeerSleep {
    pub(crate) const fn new(memory: Memory, at: usize) -> Self {
        Self { memory, at }
    }

    /// Wakes the other side if it sleeps. Called after a store for it: `pushed` means that a record
    /// was written, otherwise only room was made. Returns whether the caller must signal the peer's
    /// socket.
    #[inline]
    #[must_use]
    pub(crate) fn wake_if_asleep(&self, pushed: bool) -> bool {
        // SLEEP-1
        fence(Ordering::SeqCst);
        let word = self.memory.half(self.at);
        let seen = word.load(Ordering::Relaxed);
        if seen == AWAKE || !(pushed || seen & FOR_ROOM != 0) {
            return false;
        }
        self.wake()
    }

    /// Wakes the other side whatever it waits for. Returns whether the caller must signal the
    /// peer's socket.
    #[cold]
    pub(crate) fn wake(&self) -> bool {
        // SLEEP-2: one of the wakers that see the announcement takes it.
        let mode = self.memory.half(self.at).swap(AWAKE, Ordering::AcqRel);
        match mode & !FOR_ROOM {
            ON_FUTEX => {
                self.memory.futex_wake(self.at);
                false
            }
            ON_SOCKET => true,
            // SLEEP-3: awake, or nonsense.
            _ => false,
        }
    }
}
