//! Congestion window: the number of segments that may be in flight.
//!
//! Counted in segments, as in Linux. It grows by a segment for each acknowledged one (slow start,
//! RFC 5681 section 3.1) and, above the threshold, by one for each window. It shrinks smoothly over
//! a round trip (proportional rate reduction, RFC 6937) to the threshold that marks or a loss have
//! set.

use super::config::Config;
use super::fraction::ONE;
use super::usage::Usage;
use apus_workload::time::Nanos;

/// Least threshold. Source: RFC 5681 section 3.1 (4); RFC 8257 section 3.5; Linux,
/// `dctcp_ssthresh`.
const MIN_THRESHOLD: u32 = 2;

/// A threshold that was never set. Source: Linux, `TCP_INFINITE_SSTHRESH`.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// The congestion window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    size: u32,
    threshold: u32,
    /// Segments acknowledged towards the next growth by one.
    credit: u32,
    /// Progress of the current reduction: the window before it, and the segments delivered and sent
    /// since.
    before: u32,
    delivered: u32,
    sent: u32,
    /// Window and threshold to restore if a loss proves false.
    undo: Option<(u32, u32)>,
}

impl Window {
    pub(super) const fn new(config: &Config) -> Self {
        Self {
            size: config.initial_window,
            threshold: NO_THRESHOLD,
            credit: 0,
            before: 0,
            delivered: 0,
            sent: 0,
            undo: None,
        }
    }

    /// Returns the number of segments that may be in flight.
    pub(super) const fn size(&self) -> u32 {
        self.size
    }

    /// Returns the slow start threshold; `None` without congestion so far.
    pub(super) const fn threshold(&self) -> Option<u32> {
        if self.threshold == NO_THRESHOLD { None } else { Some(self.threshold) }
    }

    /// Returns whether the window is in slow start.
    pub(super) const fn in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// Grows the window after `delivered` segments, if the window limited the sender.
    pub(super) fn grow(&mut self, mut delivered: u32) {
        if self.in_slow_start() {
            let size = self.size.saturating_add(delivered).min(self.threshold);
            delivered -= size - self.size;
            self.size = size;
        }
        if delivered == 0 {
            return;
        }
        if self.credit >= self.size {
            self.credit = 0;
            self.size += 1;
        }
        self.credit += delivered;
        let more = self.credit / self.size;
        self.credit -= more * self.size;
        self.size += more;
    }

    /// Reduces the window because of marks: the threshold becomes (1 - alpha / 2) times the window.
    /// Source: the DCTCP paper, section 3.1 (2); Linux, `dctcp_ssthresh`.
    pub(super) fn reduce_by(&mut self, alpha: u32) {
        let cut = (u64::from(self.size) * u64::from(alpha) / u64::from(2 * ONE)) as u32;
        self.begin(self.size - cut, false);
    }

    /// Reduces the window because of a loss: the threshold becomes half the window, regardless of
    /// alpha. Source: RFC 8257 section 3.5; Linux, `dctcp_react_to_loss`. Unless marks explain the
    /// loss, the reduction can be undone.
    pub(super) fn reduce_by_half(&mut self, explained: bool) {
        self.begin(self.size / 2, !explained);
    }

    fn begin(&mut self, threshold: u32, undo: bool) {
        self.undo = undo.then(|| (self.size, self.keep_threshold()));
        self.before = self.size;
        self.threshold = threshold.max(MIN_THRESHOLD);
        self.credit = 0;
        self.delivered = 0;
        self.sent = 0;
    }

    /// Lowers the threshold because of a loss during a reduction.
    pub(super) fn halve_threshold(&mut self) {
        self.undo = None;
        self.threshold = (self.size / 2).max(MIN_THRESHOLD);
    }

    /// Records a transmission during a reduction.
    pub(super) const fn note_sent(&mut self) {
        self.sent += 1;
    }

    /// Records `delivered` segments during a reduction. `clean` is set if the first unacknowledged
    /// byte has moved and no new loss was found. Source: RFC 6937 section 3.1; Linux,
    /// `tcp_cwnd_reduction`.
    pub(super) fn reduce(&mut self, delivered: u32, in_flight: u32, clean: bool) {
        if delivered == 0 || self.before == 0 {
            return;
        }
        self.delivered += delivered;
        let send = if in_flight > self.threshold {
            let share = u64::from(self.threshold) * u64::from(self.delivered);
            (share.div_ceil(u64::from(self.before)) as u32).saturating_sub(self.sent)
        } else {
            let send = self.delivered.saturating_sub(self.sent).max(delivered);
            (send + u32::from(clean)).min(self.threshold - in_flight)
        };
        // The first retransmission always leaves.
        self.size = in_flight + send.max(u32::from(self.sent == 0));
    }

    /// Ends the reduction.
    pub(super) const fn end_reduction(&mut self) {
        self.size = self.threshold;
    }

    /// Starts slow start from one segment after a retransmission timeout.
    pub(super) const fn collapse(&mut self, in_flight: u32) {
        self.size = in_flight + 1;
        self.credit = 0;
    }

    /// Makes the reduction permanent: marks show that the loss was real.
    pub(super) const fn forget_undo(&mut self) {
        self.undo = None;
    }

    /// Restores the window after a false loss. Source: Linux, `dctcp_cwnd_undo`.
    pub(super) fn undo(&mut self) -> bool {
        let Some((size, threshold)) = self.undo.take() else { return false };
        self.size = self.size.max(size);
        self.threshold = self.threshold.max(threshold);
        true
    }

    /// Returns the threshold that preserves this window, if it is reduced for lack of data. Source:
    /// RFC 2861; Linux, `tcp_current_ssthresh`.
    const fn keep_threshold(&self) -> u32 {
        let most = self.size / 2 + self.size / 4;
        if most > self.threshold { most } else { self.threshold }
    }

    /// Reduces the window after an idle time of more than a retransmission timeout: halves it for
    /// each timeout, but not below the initial one. Source: RFC 2861 section 2; Linux,
    /// `tcp_cwnd_restart`.
    pub(super) fn restart(&mut self, config: &Config, idle: Nanos, timeout: Nanos) {
        self.threshold = self.keep_threshold();
        let least = self.size.min(config.initial_window);
        let times = (idle / timeout).min(31) as u32;
        self.size = (self.size >> times).max(least);
    }

    /// Moves the window half way to the used part, after the sender has used less than its window
    /// for a retransmission timeout. Source: RFC 2861 section 2; Linux,
    /// `tcp_cwnd_application_limited`.
    pub(super) fn shrink_to_use(&mut self, config: &Config, usage: &Usage) {
        let used = usage.most().max(config.initial_window);
        if used < self.size {
            self.threshold = self.keep_threshold();
            self.size = u32::midpoint(self.size, used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(size: u32) -> Window {
        Window { size, threshold: size, ..Window::new(&Config::default()) }
    }

    #[test]
    fn it_doubles_in_slow_start_and_then_grows_by_one_each_round_trip() {
        let mut window = Window::new(&Config::default());
        window.grow(10);
        assert_eq!(window.size(), 20, "slow start doubles");
        window.threshold = 24;
        window.grow(20);
        assert_eq!((window.size(), window.credit), (24, 16), "the rest counts above the threshold");
        window.grow(8);
        assert_eq!((window.size(), window.credit), (25, 0));
        for _ in 0..24 {
            window.grow(1);
        }
        assert_eq!(window.size(), 25);
        window.grow(1);
        assert_eq!(window.size(), 26);
    }

    /// The DCTCP paper, section 3.1 (2): alpha near 0 reduces little, alpha 1 halves.
    #[test]
    fn marks_reduce_by_half_of_alpha() {
        for (alpha, expected) in [(0, 100), (102, 96), (512, 75), (1_024, 50)] {
            let mut window = window(100);
            window.reduce_by(alpha);
            assert_eq!(window.threshold(), Some(expected));
        }
        let mut window = window(2);
        window.reduce_by(1_024);
        assert_eq!(window.threshold(), Some(2), "never below two");
    }

    /// RFC 6937: over a round trip the window shrinks evenly, and its share of segments is sent.
    #[test]
    fn a_reduction_is_spread_over_a_round_trip() {
        let mut window = window(100);
        window.reduce_by(512);
        let (mut in_flight, mut sent) = (100, 0);
        for _ in 0..100 {
            in_flight -= 1;
            window.reduce(1, in_flight, true);
            while in_flight < window.size() {
                in_flight += 1;
                sent += 1;
                window.note_sent();
            }
        }
        assert!((74..=76).contains(&sent), "{sent}");
        assert!((74..=76).contains(&in_flight), "{in_flight}");
        window.end_reduction();
        assert_eq!(window.size(), 75);
    }

    #[test]
    fn a_false_loss_is_undone() {
        let mut window = window(100);
        window.reduce_by_half(false);
        window.end_reduction();
        assert_eq!(window.size(), 50);
        assert!(window.undo());
        assert_eq!((window.size(), window.threshold()), (100, Some(100)));
        assert!(!window.undo(), "once");
        window.reduce_by_half(true);
        assert!(!window.undo(), "marks report real congestion");
    }

    #[test]
    fn an_idle_window_falls_back_to_the_initial_one() {
        let config = Config::default();
        let mut long = window(64);
        long.restart(&config, 10, 10);
        assert_eq!((long.size(), long.threshold()), (32, Some(64)));
        long.restart(&config, 1_000, 10);
        assert_eq!(long.size(), 10);
        let mut small = window(3);
        small.restart(&config, 1_000, 10);
        assert_eq!(small.size(), 3, "idleness is no reason to grow");
    }
}
