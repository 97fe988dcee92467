//! A percentile of the latency of recent calls.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Number of stored latencies. With 512, 25 values are above the 95th percentile, which follows a
/// change within 25 calls.
const REMEMBERED: usize = 512;

/// Calls between two computations of the percentile, and before the first one.
const INTERVAL: usize = 64;

/// A percentile of recent latencies.
#[derive(Debug)]
pub(super) struct Latencies {
    recent: Mutex<Recent>,
    percentile: usize,
}

#[derive(Debug, Default)]
struct Recent {
    micros: Vec<u32>,
    next: usize,
    since: usize,
    at_percentile: Option<u32>,
}

impl Latencies {
    pub(super) fn new(percentile: usize) -> Self {
        Self { recent: Mutex::default(), percentile: percentile.min(99) }
    }

    /// Counts a call.
    pub(super) fn record(&self, latency: Duration) {
        let micros = u32::try_from(latency.as_micros()).unwrap_or(u32::MAX);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.micros.len() < REMEMBERED {
            recent.micros.push(micros);
        } else {
            let next = recent.next;
            recent.micros[next] = micros;
            recent.next = (next + 1) % REMEMBERED;
        }
        recent.since += 1;
        if recent.since >= INTERVAL {
            recent.since = 0;
            let mut sorted = recent.micros.clone();
            let rank = sorted.len() * self.percentile / 100;
            recent.at_percentile = Some(*sorted.select_nth_unstable(rank).1);
        }
    }

    /// Returns the percentile; `None` before enough calls were counted.
    pub(super) fn at_percentile(&self) -> Option<Duration> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.at_percentile.map(|micros| Duration::from_micros(u64::from(micros)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_follows_recent_latencies() {
        let latencies = Latencies::new(95);
        assert_eq!(latencies.at_percentile(), None);
        for micros in 1..=1_000 {
            latencies.record(Duration::from_micros(micros % 100));
        }
        let first = latencies.at_percentile().unwrap().as_micros();
        assert!((93..=97).contains(&first), "{first}");
        (0..1_000).for_each(|_| latencies.record(Duration::from_micros(7)));
        assert_eq!(latencies.at_percentile().unwrap().as_micros(), 7);
    }
}
