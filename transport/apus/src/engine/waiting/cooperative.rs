//! Cooperative spinning: for how long the task that runs the loop keeps polling before it sleeps.
//!
//! A task that sleeps costs the next message a wake-up through the runtime: two additional system
//! calls, and the time that the processor needs to leave its idle state. So the task polls the
//! network again each time the runtime has run the other tasks, for the time of the [`PollMode`],
//! and only then registers with the runtime.
//!
//! # Invariants
//!
//! - **COOP-1** Between two polls the runtime runs every other task that is ready.
//! - **COOP-2** If another thread needs the core, the task sleeps at once, and for [`BACKOFF`] it
//!   does not spin: the peer may be the thread that waits for the core.
//!
//! Tasks of the runtime leave packets to this task while it is awake. Rationale: a call cost two
//! sends, two receives, four `epoll_wait` and two timer calls at both ends together, 43 µs; now
//! 12.5 to 15. A dedicated thread would add two wake-ups per message. Holding back on every thread
//! of a runtime would wait for a long task, and under `block_on` the packets would never leave
//! (lab/log, 2026-11-26).

use super::poll_mode::PollMode;
use super::spin::Spin;
use std::time::{Duration, Instant};

/// Number of rounds without arrivals after which the task offers the core to other threads. Chosen
/// by us: a round takes two microseconds, and the answer of an idle peer some more.
const ROUNDS_PER_OFFER: u32 = 8;

/// Number of polls of the network in a round. Chosen by us: together they take about as long as one
/// poll of the system for events by the runtime.
const POLLS: usize = 4;

/// Longest time that the system needs to find that no other thread wants the core: it takes a
/// fraction of a microsecond, and running another thread takes many.
const IDLE_OFFER: Duration = Duration::from_micros(10);

/// Time without spinning after another thread has needed the core. Chosen by us: some time slices
/// of the system's scheduler.
const BACKOFF: Duration = Duration::from_millis(10);

/// How a task spins.
#[derive(Debug)]
pub(crate) struct CooperativeSpin {
    poll: PollMode,
    spin: Spin,
    rounds: u32,
    /// Until when it does not spin.
    backs_off: Option<Instant>,
}

impl CooperativeSpin {
    pub(crate) const fn new(poll: PollMode) -> Self {
        Self { poll, spin: Spin::new(poll.spin_for()), rounds: 0, backs_off: None }
    }

    /// Returns the number of polls of the network in a round without arrivals.
    pub(crate) fn polls(&self) -> usize {
        if self.poll.sleeps_at_once() || self.backs_off.is_some() { 1 } else { POLLS }
    }

    /// After a turn with arrivals.
    pub(crate) const fn restart(&mut self) {
        self.spin = Spin::new(self.poll.spin_for());
        self.rounds = 0;
    }

    /// After a turn without arrivals. Returns whether to poll again, as opposed to sleep.
    pub(crate) fn go_on(&mut self) -> bool {
        self.go_on_unless(|| {
            let before = Instant::now();
            std::thread::yield_now();
            before.elapsed() > IDLE_OFFER
        })
    }

    /// Returns whether to poll again. `offer` offers the core to other threads, and returns whether
    /// one took it.
    fn go_on_unless(&mut self, offer: impl FnOnce() -> bool) -> bool {
        if self.backs_off.is_some_and(|until| Instant::now() < until) {
            return false;
        }
        self.backs_off = None;
        self.rounds += 1;
        if self.poll != PollMode::Spin && self.rounds.is_multiple_of(ROUNDS_PER_OFFER) && offer() {
            self.backs_off = Some(Instant::now() + BACKOFF);
            return false;
        }
        self.spin.go_on()
    }
}

#[cfg(test)]
#[cfg(not(apus_loom))]
mod tests {
    use super::*;

    #[test]
    fn a_task_spins_for_as_long_as_its_mode_says() {
        assert!(!CooperativeSpin::new(PollMode::Block).go_on_unless(|| false));
        let mut endless = CooperativeSpin::new(PollMode::Spin);
        assert!((0..10_000).all(|_| endless.go_on_unless(|| true)), "it offers its core to none");
        let mut limited = CooperativeSpin::new(PollMode::Hybrid(Duration::from_micros(20)));
        while limited.go_on_unless(|| false) {}
        assert!(limited.spin.spent() >= 20_000);
        limited.restart();
        assert!(limited.go_on_unless(|| false), "an arrival begins the time anew");
    }

    /// COOP-2.
    #[test]
    fn a_task_whose_core_is_wanted_sleeps_and_does_not_spin_for_a_while() {
        let mut spin = CooperativeSpin::new(PollMode::Hybrid(Duration::from_secs(3_600)));
        let rounds = (0..).take_while(|_| spin.go_on_unless(|| true)).count();
        assert_eq!(rounds, ROUNDS_PER_OFFER as usize - 1);
        spin.restart();
        let until = spin.backs_off.unwrap();
        if spin.go_on_unless(|| unreachable!("no offer while it backs off")) {
            assert!(until <= Instant::now(), "the machine has stopped this test for long");
        }
        spin.backs_off = Some(Instant::now());
        assert!(spin.go_on_unless(|| unreachable!("the first round")));
    }
}
