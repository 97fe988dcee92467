//! What was measured.

use std::time::{Duration, Instant};

use apus_report::stats::Latencies;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// What a client has measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Times of the calls that count, in nanoseconds.
    pub latencies: Latencies,
    /// Calls that count.
    pub calls: u64,
    /// All calls, those of the warm-up included.
    pub all_calls: u64,
    /// Nanoseconds in which calls counted.
    pub nanos: u64,
    /// Nanoseconds of processor time that the client's process used in that time.
    pub cpu: u64,
}

/// Counts calls in a window of time after a warm-up.
pub(crate) struct Window {
    from: Instant,
    until: Instant,
    latencies: Latencies,
    all_calls: u64,
    /// Processor time at the beginning, once that has come.
    cpu: Option<u64>,
}

impl Window {
    /// A window of this length after a warm-up of a tenth of it.
    pub(crate) fn after_warm_up(length: Duration) -> Self {
        let from = Instant::now() + length / 10;
        Self { from, until: from + length, latencies: Latencies::new(), all_calls: 0, cpu: None }
    }

    /// Counts a call that began at `began` and ended now, at `ended`. Returns whether the window is open still.
    pub(crate) fn count(&mut self, began: Instant, ended: Instant) -> bool {
        self.all_calls += 1;
        if ended >= self.until {
            return false;
        }
        if ended >= self.from {
            self.cpu.get_or_insert_with(cpu_nanos);
            self.latencies.record((ended - began).as_nanos() as u64);
        }
        true
    }

    /// Returns what was counted; `cpu` is the processor time at the end.
    pub(crate) fn close(self, cpu: u64) -> Measured {
        Measured {
            calls: self.latencies.len(),
            latencies: self.latencies,
            all_calls: self.all_calls,
            nanos: (self.until - self.from).as_nanos() as u64,
            cpu: self.cpu.map_or(0, |before| cpu - before),
        }
    }
}

/// Returns the nanoseconds of processor time that this process has used.
pub(crate) fn cpu_nanos() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
