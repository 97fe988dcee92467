//! Waiting: decides whether an idle loop spins or sleeps.

use std::time::{Duration, Instant};

use apus::PollMode;

/// Idle rounds of a spinning loop between two readings of the clock. A round takes two system
/// calls, about 500 ns.
const ROUNDS: u32 = 16;

/// Times in a row that a loop spins needlessly before it stops spinning.
const FAILURES: u32 = 3;

/// Number of immediate sleeps before it spins again.
const REST: u32 = 32;

/// Returns how the endpoint of a loop waits, which itself waits in the given way.
///
/// The loop spins before it waits: an endpoint that does so, too, would keep it from sleeping for
/// twice the time.
pub const fn endpoint_poll_mode(mode: PollMode) -> PollMode {
    match mode {
        PollMode::Hybrid(_) => PollMode::Block,
        other => other,
    }
}

/// The event that an idle loop waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// A request, which may arrive at any time.
    Request,
    /// The response to a call.
    Response,
}

/// Idle time of a loop, and the recent success of spinning.
///
/// Spinning is harmful where the awaited thread needs the same processor: with both processors busy
/// with other programs, a mount that spun for 100 µs got the response of its server 80 µs after it
/// had fallen asleep; a mount that slept at once got it after 60 µs (lab/log, 2026-11-24). So a
/// loop that spins needlessly several times in a row sleeps at once for a while.
#[derive(Debug)]
pub(crate) struct Idleness {
    spin_for: Option<Duration>,
    rounds: u32,
    since: Option<Instant>,
    /// The event waited for now.
    awaited: Awaited,
    /// Whether the loop may sleep, since the last round that did work.
    is_over: bool,
    /// Needless spins in a row, for requests and for responses; beyond [`FAILURES`], times without
    /// spinning.
    needless: [u32; 2],
}

impl Idleness {
    /// Starts busy.
    pub(crate) const fn new(mode: PollMode) -> Self {
        Self {
            spin_for: mode.spin_for(),
            rounds: 0,
            since: None,
            awaited: Awaited::Request,
            is_over: false,
            needless: [0; 2],
        }
    }

    /// Notes a round that did something.
    pub(crate) const fn end(&mut self) {
        if self.rounds > 0 && !self.is_over {
            self.needless[self.awaited as usize] = 0;
        }
        self.rounds = 0;
        self.since = None;
        self.is_over = false;
    }

    /// Records an idle round. Returns whether the loop may sleep now.
    pub(crate) fn may_sleep(&mut self, awaited: Awaited) -> bool {
        let Some(spin_for) = self.spin_for else { return false };
        if spin_for.is_zero() || self.is_over {
            return true;
        }
        self.awaited = awaited;
        let needless = &mut self.needless[awaited as usize];
        if *needless >= FAILURES {
            *needless += 1;
            if *needless >= FAILURES + REST {
                *needless = FAILURES - 1;
            }
            self.is_over = true;
            return true;
        }
        self.rounds += 1;
        if !self.rounds.is_multiple_of(ROUNDS) {
            return false;
        }
        let now = Instant::now();
        if now.duration_since(*self.since.get_or_insert(now)) < spin_for {
            return false;
        }
        *needless += 1;
        self.is_over = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: PollMode = PollMode::Hybrid(Duration::from_micros(10));

    /// Spins until it may sleep, and returns the number of rounds.
    fn spin(idleness: &mut Idleness, awaited: Awaited) -> u32 {
        let mut rounds = 1;
        while !idleness.may_sleep(awaited) {
            rounds += 1;
        }
        idleness.end();
        rounds
    }

    #[test]
    fn a_loop_sleeps_at_once_after_a_while_or_never() {
        let awaited = Awaited::Request;
        assert!(Idleness::new(PollMode::Block).may_sleep(awaited));
        let mut never = Idleness::new(PollMode::Spin);
        assert!((0..100 * ROUNDS).all(|_| !never.may_sleep(awaited)));
        let mut hybrid = Idleness::new(HYBRID);
        assert!(spin(&mut hybrid, awaited) >= ROUNDS);
        assert!(!hybrid.may_sleep(awaited));
    }

    #[test]
    fn a_loop_that_spins_needlessly_rests() {
        let mut idleness = Idleness::new(HYBRID);
        for _ in 0..3 {
            for _ in 0..FAILURES {
                assert!(spin(&mut idleness, Awaited::Response) >= ROUNDS);
            }
            // Requests are another matter.
            assert!(!idleness.may_sleep(Awaited::Request));
            idleness.end();
            for _ in 0..REST {
                assert_eq!(spin(&mut idleness, Awaited::Response), 1);
            }
            // It spins again, this time with success.
            assert!(!idleness.may_sleep(Awaited::Response));
            idleness.end();
        }
    }
}
