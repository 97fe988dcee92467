//! Spinning with a time limit.

use std::time::{Duration, Instant};

/// One period of spinning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spin {
    /// `None`: forever.
    limit: Option<Duration>,
    /// The first reading of the clock.
    since: Option<Instant>,
    /// The last reading of the clock.
    seen: Option<Instant>,
    rounds: u32,
}

/// Rounds between two readings of the clock. A round is a system call, or some tens of nanoseconds
/// of spinning; a reading costs as much as the latter.
const ROUNDS_PER_READING: u32 = 16;
/// Rounds between two readings of the clock without a limit: they only measure the time spent.
const ROUNDS_PER_RARE_READING: u32 = 1_024;

impl Spin {
    /// Starts to spin for `limit`; `None` stands for forever.
    pub(crate) const fn new(limit: Option<Duration>) -> Self {
        Self { limit, since: None, seen: None, rounds: 0 }
    }

    /// Spins for one round. Returns whether to spin on, as opposed to sleep.
    pub(crate) fn go_on(&mut self) -> bool {
        let Some(limit) = self.limit else {
            pause();
            self.rounds = self.rounds.wrapping_add(1);
            if self.rounds.is_multiple_of(ROUNDS_PER_RARE_READING) {
                self.read_clock();
            }
            return true;
        };
        if limit.is_zero() {
            return false;
        }
        pause();
        self.rounds += 1;
        if !self.rounds.is_multiple_of(ROUNDS_PER_READING) {
            return true;
        }
        self.read_clock() < limit
    }

    /// Reads the clock. Returns the time since the first reading.
    fn read_clock(&mut self) -> Duration {
        let now = Instant::now();
        self.seen = Some(now);
        now.duration_since(*self.since.get_or_insert(now))
    }

    /// Returns the nanoseconds between the first reading of the clock and the last one.
    pub(crate) fn spent(&self) -> u64 {
        let spent = self.since.zip(self.seen).map(|(since, seen)| seen.duration_since(since));
        u64::try_from(spent.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Spins until `done`, the time limit, or the deadline. Returns whether it was `done`.
    pub(crate) fn until(
        &mut self,
        deadline: Option<Instant>,
        mut done: impl FnMut() -> bool,
    ) -> bool {
        let mut rounds = 0_u32;
        loop {
            if done() {
                return true;
            }
            rounds = rounds.wrapping_add(1);
            let late = |at| rounds.is_multiple_of(ROUNDS_PER_READING) && at <= Instant::now();
            if !self.go_on() || deadline.is_some_and(late) {
                return false;
            }
        }
    }
}

#[cfg(not(apus_loom))]
fn pause() {
    std::hint::spin_loop();
}

#[cfg(apus_loom)]
fn pause() {
    loom::thread::yield_now();
}

#[cfg(test)]
#[cfg(not(apus_loom))]
mod tests {
    use super::*;

    #[test]
    fn no_limit_spins_forever_and_a_limit_of_zero_not_at_all() {
        assert!(!Spin::new(Some(Duration::ZERO)).go_on());
        let limit = Some(Duration::from_micros(20));
        let mut limited = Spin::new(limit);
        assert!(!limited.until(None, || false) && limited.spent() >= 20_000, "{}", limited.spent());
        let mut endless = Spin::new(None);
        assert!((0..10_000).all(|_| endless.go_on()));
        assert!(endless.spent() > 0, "the time is measured without a limit, too");
        assert!(!Spin::new(limit).until(None, || false));
        assert!(!Spin::new(None).until(Some(Instant::now()), || false), "the deadline counts");
        assert!(Spin::new(Some(Duration::ZERO)).until(None, || true));
    }
}
