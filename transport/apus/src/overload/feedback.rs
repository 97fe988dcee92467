//! Feedback: a queue that fills up stops the reception of packets.
//!
//! ```text
//!   queued      0 ────── 25 % ─────────────── 75 % ────── bound
//!   receiving   resumes ◀─┘     unchanged      └─▶ stops, for a millisecond at most
//! ```

use apus_proto::Instant;
use std::time::Duration;

/// Stops reception while the bounded queue behind it is nearly full.
///
/// Without feedback a loop continues to receive for a full queue and drops packets that it has
/// processed. With feedback the queue's consumer gets the core, and excess packets are dropped by
/// the kernel at no cost.
#[derive(Clone, Debug)]
pub struct Feedback {
    stop_at: usize,
    resume_at: usize,
    time_limit: Duration,
    /// The latest end of the current stop.
    stopped_until: Option<Instant>,
    stops: u64,
    timeouts: u64,
}

impl Feedback {
    /// Length of the queue that stops receiving, in per cent of its bound. Source: Mogul &
    /// Ramakrishnan.
    pub const STOP_PERCENT: usize = 75;

    /// Length of the queue that resumes receiving, in per cent of its bound. Source: Mogul &
    /// Ramakrishnan. The distance to [`Feedback::STOP_PERCENT`] gives the consumer a batch of work
    /// without interruption.
    pub const RESUME_PERCENT: usize = 25;

    /// Longest stop of receiving: 1 ms. Source: Mogul & Ramakrishnan, one clock tick.
    ///
    /// A limit is needed because the consumer may hang while others wait for packets. One
    /// millisecond suits Homa: receivers send a RESEND after 5 ms of silence (`resend_usecs`), so
    /// grants and acks that wait in the socket buffer for a millisecond do not count as lost.
    pub const TIME_LIMIT: Duration = Duration::from_millis(1);

    /// Creates the feedback of a queue with at most `bound` entries; 0 counts as 1.
    #[inline]
    #[must_use]
    pub const fn new(bound: usize) -> Self {
        // Rounded up, so that an empty queue never stops reception; in 128 bits, so that no bound
        // overflows.
        let stop_at = (bound as u128 * Self::STOP_PERCENT as u128).div_ceil(100) as usize;
        Self {
            stop_at: if stop_at == 0 { 1 } else { stop_at },
            resume_at: (bound as u128 * Self::RESUME_PERCENT as u128 / 100) as usize,
            time_limit: Self::TIME_LIMIT,
            stopped_until: None,
            stops: 0,
            timeouts: 0,
        }
    }

    /// Replaces [`Feedback::TIME_LIMIT`] by `limit`; [`Duration::MAX`] means no limit.
    #[inline]
    #[must_use]
    pub const fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Changes the bound of the queue. A current stop continues and ends at 25 % of the new bound.
    #[inline]
    pub const fn set_bound(&mut self, bound: usize) {
        let new = Self::new(bound);
        self.stop_at = new.stop_at;
        self.resume_at = new.resume_at;
    }

    /// Returns whether to receive now, with `queued` entries in the queue. Must be called before
    /// each batch; may be called as well when the queue has become shorter.
    ///
    /// After the time limit it returns `true` once, however long the queue is. If the queue is
    /// still too long at the next check, receiving stops again, so that a consumer that hangs
    /// leaves one batch per millisecond.
    #[inline]
    #[must_use]
    pub fn check(&mut self, queued: usize, now: Instant) -> bool {
        match self.stopped_until {
            Some(until) if queued > self.resume_at => {
                if now < until {
                    return false;
                }
                self.timeouts += 1;
                self.stopped_until = None;
                true
            }
            Some(_) => {
                self.stopped_until = None;
                true
            }
            None if queued >= self.stop_at => {
                self.stopped_until = Some(now + self.time_limit);
                self.stops += 1;
                false
            }
            None => true,
        }
    }

    /// Returns the latest end of the current stop; `None` while receiving. A stop ends sooner if
    /// [`Feedback::check`] finds the queue short enough.
    #[inline]
    #[must_use]
    pub const fn until(&self) -> Option<Instant> {
        self.stopped_until
    }

    /// Returns the number of stops so far.
    #[inline]
    #[must_use]
    pub const fn stops(&self) -> u64 {
        self.stops
    }

    /// Returns the number of stops that the time limit has ended: the consumer did not keep up, or
    /// hung.
    #[inline]
    #[must_use]
    pub const fn timeouts(&self) -> u64 {
        self.timeouts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::ZERO;

    #[test]
    fn receiving_stops_at_three_quarters_and_resumes_at_one() {
        let mut feedback = Feedback::new(32);
        assert!(feedback.check(23, START));
        assert!(!feedback.check(24, START));
        assert!(!feedback.check(9, START), "below three quarters is not enough");
        assert!(feedback.check(8, START));
        assert!(feedback.check(23, START), "as before the stop");
        assert_eq!((feedback.stops(), feedback.timeouts(), feedback.until()), (1, 0, None));
    }

    #[test]
    fn a_consumer_that_hangs_leaves_one_batch_per_time_limit() {
        let mut feedback = Feedback::new(32);
        assert!(!feedback.check(32, START));
        let end = START + Feedback::TIME_LIMIT;
        assert_eq!(feedback.until(), Some(end));
        assert!(!feedback.check(32, Instant::from_nanos(end.as_nanos() - 1)));
        assert!(feedback.check(32, end));
        assert!(!feedback.check(32, end), "one batch only");
        assert_eq!(feedback.until(), Some(end + Feedback::TIME_LIMIT));
        assert_eq!((feedback.stops(), feedback.timeouts()), (2, 1));
    }

    #[test]
    fn the_time_limit_can_be_changed_and_be_absent() {
        let mut feedback = Feedback::new(4).with_time_limit(Duration::from_nanos(5));
        assert!(!feedback.check(3, START));
        assert!(feedback.check(3, START + Duration::from_nanos(5)));
        let mut feedback = Feedback::new(4).with_time_limit(Duration::MAX);
        assert!(
            !feedback.check(3, START)
                && !feedback.check(3, START + Duration::from_nanos(u64::MAX - 1))
        );
    }

    #[test]
    fn queues_of_any_length_stop_when_full_and_resume_when_empty() {
        for bound in (0..=100).chain([usize::MAX]) {
            let mut feedback = Feedback::new(bound);
            assert!(feedback.check(0, START), "{bound}");
            assert!(!feedback.check(bound.max(1), START), "{bound}");
            assert!(feedback.check(0, START), "{bound}");
        }
    }
}
