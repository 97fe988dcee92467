//! What does the engine spend processor time on?
//!
//! Sampled: of each part one in [`EVERY`] is timed, and counts for all of them. So the counting costs a nanosecond or
//! so per pass of the loop, and is true on average; a clock for each message would cost fifty. Each part has a countdown
//! of its own, and the period is a prime: work that alternates would otherwise always hit the same part.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

/// One in so many is timed.
const EVERY: u32 = 251;

/// What time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CpuPart {
    /// Taking what has arrived, from the driver and from memory.
    Receive,
    /// What the protocol makes of it, and timers.
    Protocol,
    /// Making packets and handing them to the driver.
    Send,
    /// Looking for something to do in vain.
    Poll,
}

/// Number of parts.
const PARTS: usize = 4;

/// Nanoseconds by part. A part counts down in one thread at a time: in whoever has the turn (receive, poll) or the core lock
/// (protocol, send), so that loads and stores are enough for that.
#[derive(Debug)]
pub(super) struct Cpu {
    left: [AtomicU32; PARTS],
    nanos: [AtomicU64; PARTS],
}

impl Default for Cpu {
    fn default() -> Self {
        Self { left: [const { AtomicU32::new(EVERY) }; PARTS], nanos: Default::default() }
    }
}

impl Cpu {
    /// Something begins; its time, if it is to be timed.
    pub(super) fn begin(&self, part: CpuPart) -> Option<Instant> {
        let left = &self.left[part as usize];
        let now = left.load(Ordering::Relaxed) - 1;
        if now > 0 {
            left.store(now, Ordering::Relaxed);
            return None;
        }
        left.store(EVERY, Ordering::Relaxed);
        Some(Instant::now())
    }

    /// It ends.
    pub(super) fn end(&self, part: CpuPart, began: Option<Instant>) {
        if let Some(began) = began {
            let nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.add(part, nanos.saturating_mul(u64::from(EVERY)));
        }
    }

    /// So many nanoseconds were spent.
    pub(super) fn add(&self, part: CpuPart, nanos: u64) {
        self.nanos[part as usize].fetch_add(nanos, Ordering::Relaxed);
    }

    /// Nanoseconds spent so far.
    pub(super) fn nanos(&self, part: CpuPart) -> u64 {
        self.nanos[part as usize].load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(apus_loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_in_so_many_is_timed_and_counts_for_all() {
        let cpu = Cpu::default();
        for round in 1..=2 * EVERY {
            let began = cpu.begin(CpuPart::Send);
            assert_eq!(began.is_some(), round % EVERY == 0, "round {round}");
            cpu.end(CpuPart::Send, began);
        }
        let nanos = cpu.nanos(CpuPart::Send);
        assert!(nanos > 0 && nanos % u64::from(EVERY) == 0, "{nanos}");
        assert_eq!(cpu.nanos(CpuPart::Poll), 0);
    }
}
