//! For how long is a thread that never sleeps kept from running?

use std::thread;
use std::time::Duration;

use apus_testbed::clock;

/// How long to look. Ours: long enough for several of the scheduler's slices.
const LOOK: Duration = Duration::from_millis(60);

/// Threads at most; more tell nothing new.
const MOST: usize = 64;

/// What threads that spin got.
#[derive(Clone, Copy, Debug)]
pub(in crate::doctor) struct Stall {
    /// The longest time that one of them did not run, in microseconds.
    pub(in crate::doctor) longest_us: f64,
    /// Share of the time in which they ran, on average.
    pub(in crate::doctor) share: f64,
}

/// A gap between two readings of the clock from which on the thread did not run. Ours: forty times what two
/// readings take.
const GAP: u64 = 1_000;

/// Lets so many threads spin at the same time.
pub(in crate::doctor) fn of(threads: usize) -> Stall {
    let threads = threads.clamp(1, MOST);
    let each: Vec<(u64, u64)> = thread::scope(|scope| {
        let spinning: Vec<_> = (0..threads).map(|_| scope.spawn(spin)).collect();
        spinning.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    });
    let longest = each.iter().map(|(longest, _)| *longest).max().unwrap_or_default();
    let missing: u64 = each.iter().map(|(_, missing)| missing).sum();
    let all = (clock::as_nanoseconds(LOOK) * threads as u64) as f64;
    Stall { longest_us: longest as f64 / 1e3, share: (1.0 - missing as f64 / all).max(0.0) }
}

/// The longest gap, and all gaps together, in nanoseconds.
fn spin() -> (u64, u64) {
    let began = clock::now();
    let end = began + clock::as_nanoseconds(LOOK);
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
        let stall = of(MOST);
        // So many cores and nothing else to do is what no machine of ours has.
        assert!(stall.longest_us >= 0.0 && (0.0..=1.0).contains(&stall.share), "{stall:?}");
    }
}
