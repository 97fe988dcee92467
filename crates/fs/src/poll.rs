//! Waiting: whether a loop that found nothing to do spins or sleeps.

use std::time::{Duration, Instant};

use apus::PollMode;

/// Idle rounds of a spinning loop between two readings of the clock. A round takes two system calls, about 500 ns.
const ROUNDS: u32 = 16;

/// How long a loop has been idle.
#[derive(Debug)]
pub(crate) struct Idleness {
    spin_for: Option<Duration>,
    rounds: u32,
    since: Option<Instant>,
}

impl Idleness {
    /// Begins busy.
    pub(crate) const fn new(mode: PollMode) -> Self {
        Self { spin_for: mode.spin_for(), rounds: 0, since: None }
    }

    /// Notes a round that did something.
    pub(crate) const fn end(&mut self) {
        self.rounds = 0;
        self.since = None;
    }

    /// Notes a round that did nothing. Returns whether the loop may sleep now.
    pub(crate) fn may_sleep(&mut self) -> bool {
        let Some(spin_for) = self.spin_for else { return false };
        if spin_for.is_zero() {
            return true;
        }
        self.rounds += 1;
        if !self.rounds.is_multiple_of(ROUNDS) {
            return false;
        }
        let now = Instant::now();
        now.duration_since(*self.since.get_or_insert(now)) >= spin_for
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_sleeps_at_once_after_a_while_or_never() {
        assert!(Idleness::new(PollMode::Block).may_sleep());
        let mut never = Idleness::new(PollMode::Spin);
        assert!((0..100 * ROUNDS).all(|_| !never.may_sleep()));
        let mut hybrid = Idleness::new(PollMode::Hybrid(Duration::from_micros(10)));
        assert!(!hybrid.may_sleep());
        while !hybrid.may_sleep() {}
        hybrid.end();
        assert!(!hybrid.may_sleep());
    }
}
