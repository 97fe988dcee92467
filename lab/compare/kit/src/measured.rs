//! Measurements of a client.

use std::time::{Duration, Instant};

use apus_report::stats::Latencies;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Measurements of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Times of the calls that count, in nanoseconds.
    pub latencies: Latencies,
    /// Calls that count.
    pub calls: u64,
    /// Number of calls, including the warm-up.
    pub all_calls: u64,
    /// Length of the counting window in nanoseconds.
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
    /// Processor time at the start of the window, once it has started.
    cpu: Option<u64>,
}

impl Window {
    /// A window of this length, preceded by a warm-up of a tenth of it.
    pub(crate) fn after_warm_up(length: Duration) -> Self {
        let from = Instant::now() + length / 10;
        Self { from, until: from + length, latencies: Latencies::new(), all_calls: 0, cpu: None }
    }

    /// Counts a call from `began` to `ended` (now). Returns whether the window is still open.
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

    /// Returns the measurements; `cpu` is the processor time at the end.
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
