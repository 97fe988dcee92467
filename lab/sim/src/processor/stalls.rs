//! Stalls: periods without processor activity.

use apus_workload::time::Nanos;

/// A period without processor activity, as if the process were stopped. Packets still arrive in its
/// socket buffer, and packets that it has sent still leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Start.
    pub from: Nanos,
    /// End.
    pub until: Nanos,
}

/// The stalls of a processor, in order of time and without overlap.
#[derive(Clone, Debug, Default)]
pub(super) struct Stalls(Vec<Stall>);

impl Stalls {
    pub(super) fn new(mut stalls: Vec<Stall>) -> Self {
        stalls.sort_unstable_by_key(|stall| stall.from);
        Self(stalls)
    }

    /// Returns the first time from `at` on when the processor runs.
    pub(super) fn resumes(&self, at: Nanos) -> Nanos {
        self.0.iter().fold(at, |at, stall| {
            if (stall.from..stall.until).contains(&at) { stall.until } else { at }
        })
    }

    /// Returns the last time until `now` when the processor was running: `now`, or the start of the
    /// stall that ends at that time.
    pub(super) fn last_running(&self, now: Nanos) -> Nanos {
        self.0.iter().find(|stall| stall.until == now).map_or(now, |stall| stall.from)
    }

    /// Returns the end of work that takes `time` and starts at `at`, including the delay by stalls.
    pub(super) fn end(&self, at: Nanos, time: Nanos) -> Nanos {
        self.0.iter().fold(at + time, |end, stall| {
            if stall.from < end && at < stall.until {
                end + stall.until - stall.from.max(at)
            } else {
                end
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stalls() -> Stalls {
        Stalls::new(vec![Stall { from: 200, until: 300 }, Stall { from: 100, until: 110 }])
    }

    #[test]
    fn work_resumes_where_the_stall_interrupted_it() {
        assert_eq!(stalls().end(0, 100), 100);
        assert_eq!(stalls().end(50, 60), 120);
        assert_eq!(stalls().end(50, 150), 310, "both");
        assert_eq!(stalls().end(310, 10), 320);
    }

    #[test]
    fn a_stalled_processor_resumes_at_the_end() {
        assert_eq!(stalls().resumes(99), 99);
        assert_eq!(stalls().resumes(100), 110);
        assert_eq!(stalls().resumes(299), 300);
        assert_eq!(stalls().resumes(300), 300);
        assert_eq!((stalls().last_running(300), stalls().last_running(301)), (200, 301));
    }
}
