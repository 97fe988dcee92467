//! Use of the congestion window.
//!
//! An unused window reveals nothing about the path and does not grow. Source: RFC 7661 in
//! principle, Linux in detail (`tcp_cwnd_validate`, `tcp_is_cwnd_limited`).

use super::segment::Position;
use apus_workload::time::Nanos;

/// Use of the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Whether it was full in this window of data.
    full: bool,
    /// Most unacknowledged segments in this window of data, if it was not full.
    most_out: u32,
    /// The window of data ends when this position is acknowledged.
    window_end: Position,
    /// Most unacknowledged segments since `since`, when the window was last used up.
    most: u32,
    since: Nanos,
}

/// State of a sender after it has sent a segment.
pub(super) struct SendSnapshot {
    pub(super) now: Nanos,
    pub(super) una: Position,
    pub(super) next: Position,
    /// Number of unacknowledged segments.
    pub(super) out: u32,
    /// Whether no more segments may be in flight.
    pub(super) full: bool,
    /// Size of the window.
    pub(super) size: u32,
    pub(super) in_slow_start: bool,
}

impl Usage {
    /// Records a transmission. Returns how long the window has not been used up.
    pub(super) fn on_sent(&mut self, moment: &SendSnapshot) -> Nanos {
        if moment.una >= self.window_end
            || moment.full
            || (!self.full && moment.out > self.most_out)
        {
            self.full = moment.full;
            self.most_out = moment.out;
            self.window_end = moment.next;
        }
        if self.is_limiting(moment.size, moment.in_slow_start) {
            self.restart(moment.now);
            return 0;
        }
        self.most = self.most.max(moment.out);
        moment.now - self.since
    }

    /// Returns whether the window may grow: it was full, or half full in slow start.
    pub(super) const fn is_limiting(&self, size: u32, in_slow_start: bool) -> bool {
        self.full || (in_slow_start && size < 2 * self.most_out)
    }

    /// Returns the most segments that were recently unacknowledged.
    pub(super) const fn most(&self) -> u32 {
        self.most
    }

    /// Restarts the observation.
    pub(super) const fn restart(&mut self, now: Nanos) {
        self.most = 0;
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(una: Position, next: Position, full: bool) -> SendSnapshot {
        let out = (next - una) as u32;
        SendSnapshot { now: next * 10, una, next, out, full, size: 20, in_slow_start: true }
    }

    #[test]
    fn a_window_that_is_half_used_grows_in_slow_start_only() {
        let mut usage = Usage::default();
        usage.on_sent(&moment(0, 10, false));
        assert!(!usage.is_limiting(20, true), "ten of twenty");
        assert_eq!(usage.on_sent(&moment(0, 11, false)), 0);
        assert!(usage.is_limiting(20, true));
        assert!(!usage.is_limiting(20, false));
        usage.on_sent(&moment(0, 20, true));
        assert!(usage.is_limiting(20, false), "full");
    }

    #[test]
    fn a_full_window_counts_until_it_is_acknowledged() {
        let mut usage = Usage::default();
        usage.on_sent(&moment(0, 20, true));
        usage.on_sent(&moment(19, 21, false));
        assert!(usage.is_limiting(20, false));
        usage.on_sent(&moment(20, 22, false));
        assert!(!usage.is_limiting(20, false));
        assert_eq!(usage.on_sent(&moment(20, 23, false)), 20, "since the window was used up last");
    }
}
