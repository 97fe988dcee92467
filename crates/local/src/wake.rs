//! How does one side sleep until the other has something for it, and how is it woken?
//!
//! Each side has one word that says whether it sleeps. Before it does it announces that, and looks once
//! more; whoever has done something for it looks at the word afterwards. Both put a full fence between
//! their store and their load, so at least one of them sees the other: SYNC POINT 3.
//!
//! ```text
//!   sleeper                         waker
//!   sleep ← how                     record, or head, stored
//!   ── fence ──                     ── fence ──
//!   look at rings: nothing?         sleep ≠ awake?
//!   sleep on it                     sleep ← awake, and a system call
//! ```
//!
//! # Invariants
//!
//! - **K1** No wake-up is lost: the fences above. Checked by loom (`model`).
//! - **K2** A waker makes a system call only if the word said that the other side sleeps, and takes that
//!   back first: one call for each sleep.
//! - **K3** A peer that writes nonsense into these words can deprive itself of being woken, and this side of
//!   being told by *it*. How the other sleeps is taken from its word once; no call that this leads to can
//!   block (waking a futex; a byte with MSG_DONTWAIT on this side's own socket).
//! - **K4** All writes of a word are swaps, which release and acquire: whoever announces sees who has roused this
//!   side before, and why. A plain store might come first and be seen last.

use std::time::Duration;

use crate::memory::Memory;
use crate::sync::{Ordering, fence};

/// How a side sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// On its word, as a futex.
    Futex,
    /// On its socket, and perhaps on others at the same time.
    Socket,
}

const AWAKE: u32 = 0;
const ON_FUTEX: u32 = 1;
const ON_SOCKET: u32 = 2;
/// It is also to be woken when there is room for what it has to send.
const FOR_ROOM: u32 = 4;

/// This side's own word.
pub(crate) struct Sleep {
    memory: Memory,
    at: usize,
}

impl Sleep {
    pub(crate) const fn new(memory: Memory, at: usize) -> Self {
        Self { memory, at }
    }

    /// Announces that this side sleeps. It must look at everything once more before it does.
    pub(crate) fn announce(&self, how: How, for_room: bool) {
        let how = match how {
            How::Futex => ON_FUTEX,
            How::Socket => ON_SOCKET,
        };
        let value = how | if for_room { FOR_ROOM } else { 0 };
        // K4
        self.memory.half(self.at).swap(value, Ordering::AcqRel);
        // SYNC POINT 3
        fence(Ordering::SeqCst);
    }

    /// This side is awake, or does not sleep after all.
    pub(crate) fn withdraw(&self) {
        self.memory.half(self.at).swap(AWAKE, Ordering::AcqRel);
    }

    /// Sleeps on the word until it is woken, but no longer than `time`. May return early.
    pub(crate) fn doze(&self, time: Duration) {
        let value = self.memory.half(self.at).load(Ordering::Relaxed);
        if value & !FOR_ROOM == ON_FUTEX {
            self.memory.sleep(self.at, value, time);
        }
    }

    /// Ends the sleep of a thread of this process on the word. What it shall find must be stored before.
    pub(crate) fn rouse(&self) {
        self.memory.half(self.at).swap(AWAKE, Ordering::AcqRel);
        self.memory.rouse(self.at);
    }
}

/// The other side's word.
pub(crate) struct Alarm {
    memory: Memory,
    at: usize,
}

impl Alarm {
    pub(crate) const fn new(memory: Memory, at: usize) -> Self {
        Self { memory, at }
    }

    /// Wakes the other side if it sleeps; to be called after something was done for it: `pushed` a record, or
    /// only made room. Whether its socket must be rung.
    #[inline]
    #[must_use]
    pub(crate) fn ring(&self, pushed: bool) -> bool {
        // SYNC POINT 3
        fence(Ordering::SeqCst);
        let word = self.memory.half(self.at);
        let seen = word.load(Ordering::Relaxed);
        if seen == AWAKE || !(pushed || seen & FOR_ROOM != 0) {
            return false;
        }
        self.wake()
    }

    /// Wakes it whatever it waits for. Whether its socket must be rung.
    #[cold]
    pub(crate) fn wake(&self) -> bool {
        // K2: one of those who see the announcement takes it.
        let how = self.memory.half(self.at).swap(AWAKE, Ordering::AcqRel);
        match how & !FOR_ROOM {
            ON_FUTEX => {
                self.memory.rouse(self.at);
                false
            }
            ON_SOCKET => true,
            // K3: awake, or nonsense.
            _ => false,
        }
    }
}
