//! When does a queue towards the application stop the receiving?
//!
//! ```text
//!   queued      0 ────── 25 % ─────────────── 75 % ────── bound
//!   receiving   goes on ◀─┘  as it was before  └─▶ stops, for a millisecond at most
//! ```

use super::Instant;
use std::time::Duration;

/// Watches a bounded queue that packets are received into and that somebody else empties.
///
/// Without it, a loop goes on receiving for a queue that is full, and drops what it has worked for. With it,
/// the queue's consumer has the core, and what comes too much is dropped where it costs nothing.
#[derive(Clone, Debug)]
pub struct Feedback {
    stop_at: usize,
    go_on_at: usize,
    time_limit: u64,
    /// Receiving has stopped, until then at most.
    stopped_until: Option<Instant>,
    stops: u64,
    timeouts: u64,
}

impl Feedback {
    /// Percentage of its bound at which a queue stops the receiving. Source: Mogul & Ramakrishnan.
    pub const STOP_PERCENT: usize = 75;

    /// Percentage of its bound at which receiving goes on. Source: Mogul & Ramakrishnan. The distance
    /// between the two makes a batch of the work: the consumer is not interrupted after each packet.
    pub const RESUME_PERCENT: usize = 25;

    /// How long receiving stops at most: 1 ms, in nanoseconds. Source: Mogul & Ramakrishnan, a clock tick;
    /// the consumer may hang, and others wait for packets, too. It suits Homa: receivers ask again for what is
    /// missing after 5 ms of silence (`resend_ticks`), so grants and acks that wait in the socket buffer for
    /// a millisecond are not taken for lost.
    pub const TIME_LIMIT: u64 = 1_000_000;

    /// For a queue of at most `bound` entries; 0 counts as 1.
    #[must_use]
    pub const fn new(bound: usize) -> Self {
        // Rounded up, so that it is not reached by an empty queue; 128 bits, so that no bound is too large.
        let stop_at = (bound as u128 * Self::STOP_PERCENT as u128).div_ceil(100) as usize;
        Self {
            stop_at: if stop_at == 0 { 1 } else { stop_at },
            go_on_at: (bound as u128 * Self::RESUME_PERCENT as u128 / 100) as usize,
            time_limit: Self::TIME_LIMIT,
            stopped_until: None,
            stops: 0,
            timeouts: 0,
        }
    }

    /// The same with another time limit in nanoseconds; [`u64::MAX`] is none.
    #[must_use]
    pub const fn with_time_limit(mut self, nanos: u64) -> Self {
        self.time_limit = nanos;
        self
    }

    /// The queue may be of another length from now on. A stop goes on, with the new quarter as its end.
    pub const fn set_bound(&mut self, bound: usize) {
        let new = Self::new(bound);
        self.stop_at = new.stop_at;
        self.go_on_at = new.go_on_at;
    }

    /// Whether to receive now, while so many entries are queued. To be asked before each batch, and as well
    /// when the queue has become shorter.
    ///
    /// After the time limit it says yes once, however long the queue is; if it is still too long at the next
    /// look, receiving stops again. So a consumer that hangs leaves one turn in a millisecond to the others.
    #[must_use]
    pub fn check(&mut self, queued: usize, now: Instant) -> bool {
        match self.stopped_until {
            Some(until) if queued > self.go_on_at => {
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
                self.stopped_until = Some(now + Duration::from_nanos(self.time_limit));
                self.stops += 1;
                false
            }
            None => true,
        }
    }

    /// If receiving has stopped: until when at most. It goes on sooner if a [`check`](Self::check) finds the
    /// queue short.
    #[must_use]
    pub const fn until(&self) -> Option<Instant> {
        self.stopped_until
    }

    /// How often receiving has stopped.
    #[must_use]
    pub const fn stops(&self) -> u64 {
        self.stops
    }

    /// How many of the stops the time limit has ended: the consumer did not keep up, or hung.
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
    fn it_stops_at_three_quarters_and_goes_on_at_one() {
        let mut feedback = Feedback::new(32);
        assert!(feedback.check(23, START));
        assert!(!feedback.check(24, START));
        assert!(!feedback.check(9, START), "below three quarters is not enough");
        assert!(feedback.check(8, START));
        assert!(feedback.check(23, START), "as before the stop");
        assert_eq!((feedback.stops(), feedback.timeouts(), feedback.until()), (1, 0, None));
    }

    #[test]
    fn a_consumer_that_hangs_leaves_one_turn_in_a_time_limit() {
        let mut feedback = Feedback::new(32);
        assert!(!feedback.check(32, START));
        let end = START + Duration::from_nanos(Feedback::TIME_LIMIT);
        assert_eq!(feedback.until(), Some(end));
        assert!(!feedback.check(32, Instant::from_nanos(end.as_nanos() - 1)));
        assert!(feedback.check(32, end));
        assert!(!feedback.check(32, end), "one turn only");
        assert_eq!(feedback.until(), Some(end + Duration::from_nanos(Feedback::TIME_LIMIT)));
        assert_eq!((feedback.stops(), feedback.timeouts()), (2, 1));
    }

    #[test]
    fn the_time_limit_can_be_changed_and_be_absent() {
        let mut feedback = Feedback::new(4).with_time_limit(5);
        assert!(!feedback.check(3, START));
        assert!(feedback.check(3, START + Duration::from_nanos(5)));
        let mut feedback = Feedback::new(4).with_time_limit(u64::MAX);
        assert!(
            !feedback.check(3, START)
                && !feedback.check(3, START + Duration::from_nanos(u64::MAX - 1))
        );
    }

    #[test]
    fn queues_of_any_length_stop_when_full_and_go_on_when_empty() {
        for bound in (0..=100).chain([usize::MAX]) {
            let mut feedback = Feedback::new(bound);
            assert!(feedback.check(0, START), "{bound}");
            assert!(!feedback.check(bound.max(1), START), "{bound}");
            assert!(feedback.check(0, START), "{bound}");
        }
    }
}
