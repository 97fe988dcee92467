//! Recovery: time from a disturbance until the median of short messages is back to normal.
//!
//! Messages belong to the window in which they were due: the backlog of the disturbance must drain
//! before later requests are fast again.

use std::ops::Range;

use crate::loopback::Window;

/// Maximum ratio to the median before the disturbance that counts as recovered. Source: the goal
/// set for apus.
const BACK: f64 = 1.5;

/// Number of windows with a low median that make a recovery; the same number of following windows
/// must confirm it. Chosen by us: a contender that oscillates has not recovered, and a single slow
/// window under load is no relapse.
const SPAN: usize = 10;

/// Observations around one disturbance. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Recovery {
    /// Median before the disturbance.
    pub(super) before: u64,
    /// Time from the end of the disturbance to the first fast window; `None` if the run has no such
    /// window.
    pub(super) after: Option<u64>,
}

/// Returns the recovery from a disturbance, given windows of `length`. `None` if no message was
/// completed before it.
pub(super) fn recovery(
    windows: &[Window],
    length: u64,
    disturbed: &Range<u64>,
) -> Option<Recovery> {
    let last_before = (disturbed.start / length) as usize;
    let before = median(windows.get(..last_before)?.iter().filter(|window| window.due > 0))?;
    let limit = (before as f64 * BACK) as u64;
    let first = disturbed.end.div_ceil(length) as usize;
    let is_back = |index: usize| {
        let span = |from: usize| Some(median(windows.get(from..from + SPAN)?.iter())? <= limit);
        windows[index].p50.is_some_and(|p50| p50 <= limit)
            && span(index) == Some(true)
            && span(index + SPAN) == Some(true)
    };
    let back = (first..windows.len()).find(|&index| is_back(index));
    let after = back.map(|index| index as u64 * length - disturbed.end);
    Some(Recovery { before, after })
}

/// Returns the median of the windows' medians; windows without a median are slower than all others.
/// `None` if half of the windows have no median, or without windows.
fn median<'a>(windows: impl Iterator<Item = &'a Window>) -> Option<u64> {
    let mut medians: Vec<u64> = windows.map(|window| window.p50.unwrap_or(u64::MAX)).collect();
    medians.sort_unstable();
    medians.get(medians.len() / 2).copied().filter(|&median| median < u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of 10 that last 1000 each, disturbed from 9500 to 12300.
    const LENGTH: u64 = 1000;
    const DISTURBED: Range<u64> = 9_500..12_300;

    fn windows(medians: impl IntoIterator<Item = Option<u64>>) -> Vec<Window> {
        medians.into_iter().map(|p50| Window { due: 40, p50 }).collect()
    }

    /// Returns windows that take 20 before the disturbance, `slow` during it, and then `after`.
    fn series(after: impl IntoIterator<Item = Option<u64>>) -> Vec<Window> {
        let before = [20, 18, 22, 20, 25, 20, 19, 20, 21, 300].map(Some);
        windows(before.into_iter().chain([Some(2_000); 3]).chain(after))
    }

    fn after(windows: &[Window]) -> Option<u64> {
        let recovery = recovery(windows, LENGTH, &DISTURBED).unwrap();
        assert_eq!(recovery.before, 20);
        recovery.after
    }

    #[test]
    fn windows_that_are_fast_again_at_once_end_it() {
        assert_eq!(after(&series([Some(20); 30])), Some(700), "the first whole window behind it");
    }

    #[test]
    fn the_queue_has_to_drain_first() {
        let drains = [900, 700, 500, 300, 100, 31].map(Some);
        assert_eq!(after(&series(drains.into_iter().chain([Some(30); 30]))), Some(6_700));
    }

    #[test]
    fn a_slow_state_is_no_recovery() {
        assert_eq!(after(&series([Some(31); 100])), None);
        assert_eq!(after(&series([None; 100])), None, "nothing is completed any more");
    }

    #[test]
    fn a_fast_window_in_a_slow_state_is_no_recovery() {
        let mut slow = [Some(600); 60];
        for index in [3, 4, 17, 30, 31, 32] {
            slow[index] = Some(20);
        }
        assert_eq!(after(&series(slow)), None);
    }

    #[test]
    fn a_relapse_is_no_recovery() {
        let short_while = [Some(20); 12].into_iter().chain([Some(600); 40]);
        assert_eq!(after(&series(short_while.clone())), None);
        let at_last = short_while.chain([Some(20); 30]);
        assert_eq!(after(&series(at_last)), Some(52_700));
    }

    #[test]
    fn noise_is_no_relapse() {
        let noisy = (0..60).map(|index| Some(if index % 4 == 3 { 90 } else { 22 }));
        assert_eq!(after(&series(noisy)), Some(700));
    }

    #[test]
    fn a_run_that_ends_too_early_shows_no_recovery() {
        assert_eq!(after(&series([Some(20); 2 * SPAN])), Some(700));
        assert_eq!(after(&series([Some(20); 2 * SPAN - 1])), None);
    }

    #[test]
    fn without_messages_before_it_nothing_can_be_said() {
        assert_eq!(recovery(&windows([Some(20); 5]), LENGTH, &(500..700)), None);
        let empty = vec![Window { due: 0, p50: None }; 60];
        assert_eq!(recovery(&empty, LENGTH, &DISTURBED), None);
    }
}
