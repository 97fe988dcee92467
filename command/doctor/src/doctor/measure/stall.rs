//! Stalls: measures the time that spinning threads are prevented from running.

use std::thread;
use std::time::Duration;

use apus_measure::clock;

/// Duration of the measurement. Chosen by us: several time slices of the scheduler.
const PERIOD: Duration = Duration::from_millis(60);

/// Maximum number of threads; more would add no information.
const MAX_THREADS: usize = 64;

/// CPU time of spinning threads.
#[derive(Clone, Copy, Debug)]
pub(in crate::doctor) struct Stall {
    /// Longest stall of a thread, in microseconds.
    pub(in crate::doctor) longest_us: f64,
    /// Mean share of time during which the threads ran.
    pub(in crate::doctor) share: f64,
}

/// Minimum gap between two clock readings, in nanoseconds, that counts as a stall of the thread.
/// Chosen by us: forty times the duration of two readings.
const GAP: u64 = 1_000;

/// Runs `threads` spinning threads at the same time.
pub(in crate::doctor) fn of(threads: usize) -> Stall {
    let threads = threads.clamp(1, MAX_THREADS);
    let each: Vec<(u64, u64)> = thread::scope(|scope| {
        let spinning: Vec<_> = (0..threads).map(|_| scope.spawn(spin)).collect();
        spinning.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    });
    let longest = each.iter().map(|(longest, _)| *longest).max().unwrap_or_default();
    let missing: u64 = each.iter().map(|(_, missing)| missing).sum();
    let all = (clock::as_nanoseconds(PERIOD) * threads as u64) as f64;
    Stall { longest_us: longest as f64 / 1e3, share: (1.0 - missing as f64 / all).max(0.0) }
}

/// Returns the longest gap and the sum of all gaps, in nanoseconds.
fn spin() -> (u64, u64) {
    let began = clock::now();
    let end = began + clock::as_nanoseconds(PERIOD);
    let (mut last, mut longest, mut missing) = (began, 0, 0);
    while last < end {
        let now = clock::now();
        let gap = now - last;
        if gap > GAP {
            missing += gap;
            longest = longest.max(gap);
        }
        last = now;
    }
    (longest, missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_threads_share_what_cores_there_are() {
        let stall = of(MAX_THREADS);
        // The result depends on the number of cores and on other load.
        assert!(stall.longest_us >= 0.0 && (0.0..=1.0).contains(&stall.share), "{stall:?}");
    }
}
