//! Processor time of the engine, by part of the loop, sampled.
//!
//! One run of each part in [`EVERY`] is timed and counts for all of them. Sampling costs about a
//! nanosecond per pass of the loop and is right on average; two readings of the clock for each
//! would cost fifty. Each part has a separate countdown, and the period is a prime: otherwise
//! alternating work would always hit the same part.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

/// One run of a part in this number is timed.
const EVERY: u32 = 251;

/// A part of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CpuPart {
    /// Receiving from the driver and from shared memory.
    Receive,
    /// Handling packets and timers in the protocol.
    Protocol,
    /// Making packets and giving them to the driver.
    Send,
    /// Polling without success.
    Poll,
}

/// Number of parts.
const PARTS: usize = 4;

/// Nanoseconds by part. A part counts down in one thread at a time, the leader (receive, poll) or
/// the holder of the core lock (protocol, send), so that loads and stores are enough.
#[derive(Debug)]
pub(crate) struct Cpu {
    left: [AtomicU32; PARTS],
    nanos: [AtomicU64; PARTS],
}

impl Default for Cpu {
    fn default() -> Self {
        Self { left: [const { AtomicU32::new(EVERY) }; PARTS], nanos: Default::default() }
    }
}

impl Cpu {
    /// Starts a part. Returns the time if it is timed.
    pub(crate) fn begin(&self, part: CpuPart) -> Option<Instant> {
        let left = &self.left[part as usize];
        let now = left.load(Ordering::Relaxed) - 1;
        if now > 0 {
            left.store(now, Ordering::Relaxed);
            return None;
        }
        left.store(EVERY, Ordering::Relaxed);
        Some(Instant::now())
    }

    /// Ends a part.
    pub(crate) fn end(&self, part: CpuPart, began: Option<Instant>) {
        if let Some(began) = began {
            let nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.add(part, nanos.saturating_mul(u64::from(EVERY)));
        }
    }

    /// Adds time that was measured elsewhere.
    pub(crate) fn add(&self, part: CpuPart, nanos: u64) {
        self.nanos[part as usize].fetch_add(nanos, Ordering::Relaxed);
    }

    /// Returns the nanoseconds spent so far.
    pub(crate) fn nanos(&self, part: CpuPart) -> u64 {
        self.nanos[part as usize].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[cfg(not(apus_loom))]
mod tests {
    use super::*;

    #[test]
    fn one_run_in_251_is_timed_and_counts_for_all() {
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
