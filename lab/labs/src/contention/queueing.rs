//! A queueing model of one lock with more workers than cores.
//!
//! The machine repairman model of queueing theory: each of `n` workers alternates between work
//! outside the lock (`rest`) and under it (`critical`). A birth-death chain over the number of
//! workers at the lock has its steady state in closed form. While a worker waits, each turn also
//! takes `handover`: the cache lines of the lock and of the data under it move between cores, or a
//! sleeper is woken.
//!
//! ```text
//!   workers at the lock     0 ──▶ 1 ──▶ 2 ──▶ … ──▶ n          (n - j) / rest  upwards
//!                             ◀──   ◀──   ◀──                  1 / critical    from 1 downwards
//!                                                              1 / (critical + handover)   from 2 on
//! ```
//!
//! # Simplifications
//!
//! Times are exponential; steadier times queue slightly less. `handover` is constant here, although
//! every worker that spins on the lock slows its handover down, more so on a host with several
//! sockets: FreeBSD's rate *fell* from six processes on. So the model favours the global lock. Each
//! worker has its own core, and cores share no other resource, which favours all contenders.

/// A lock with its workers; times are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OneLock {
    /// Time between releasing the lock and requesting it again.
    pub(super) rest: f64,
    /// Hold time.
    pub(super) critical: f64,
    /// Additional time to hand the lock over to a waiting worker.
    pub(super) handover: f64,
}

/// The result of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Expected {
    /// Acquisitions per second, all workers together.
    pub(super) turns: f64,
    /// Mean nanoseconds from requesting the lock to acquiring it.
    pub(super) wait: f64,
}

/// Upper bound of the search for the handover, in nanoseconds: a millisecond, a hundred wake-ups.
const LONGEST: f64 = 1e6;

/// Halvings in the search: to less than a thousandth of a nanosecond.
const HALVINGS: u32 = 32;

impl OneLock {
    /// Fits the handover such that `workers` workers have `turns` acquisitions per second; 0 if
    /// queueing alone predicts fewer.
    pub(super) fn fitted(rest: f64, critical: f64, workers: usize, turns: f64) -> Self {
        let with = |handover| Self { rest, critical, handover };
        let (mut low, mut high) = (0.0, LONGEST);
        if workers < 2 || with(low).expected(workers).turns <= turns {
            return with(0.0);
        }
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if with(middle).expected(workers).turns > turns {
                low = middle;
            } else {
                high = middle;
            }
        }
        with(f64::midpoint(low, high))
    }

    /// Returns the acquisitions per second and the wait of `workers` workers.
    pub(super) fn expected(&self, workers: usize) -> Expected {
        let serve = |at_lock: usize| match at_lock {
            1 => self.critical,
            _ => self.critical + self.handover,
        };
        // Logarithms of the probabilities of each number at the lock: their quotients exceed the
        // range of floats.
        let mut chances = vec![0.0];
        for at_lock in 1..=workers {
            let arrivals = (workers - at_lock + 1) as f64 / self.rest;
            chances.push(chances[at_lock - 1] + (arrivals * serve(at_lock)).ln());
        }
        let most = chances.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let chances: Vec<f64> = chances.iter().map(|chance| (chance - most).exp()).collect();
        let sum: f64 = chances.iter().sum();
        let busy = 1.0 - chances[0] / sum;
        let served = |(at_lock, chance): (usize, &f64)| chance / sum / serve(at_lock);
        let per_nanosecond: f64 = chances.iter().enumerate().skip(1).map(served).sum();
        // Little's law for the time outside `rest`, less the hold time.
        let away = workers as f64 / per_nanosecond - self.rest;
        Expected { turns: per_nanosecond * 1e9, wait: (away - busy / per_nanosecond).max(0.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-6 * b.abs().max(1e-6)
    }

    const LOCK: OneLock = OneLock { rest: 150.0, critical: 50.0, handover: 0.0 };

    #[test]
    fn one_worker_never_waits() {
        let Expected { turns, wait } = OneLock { handover: 1e3, ..LOCK }.expected(1);
        assert!(near(turns, 1e9 / 200.0) && wait < 1e-6, "{turns} {wait}");
    }

    /// Computed by hand: rest 150, critical 50, so p1/p0 = 2/3, p2/p1 = 1/3; p0 = 9/17, and 8/17 of
    /// 1/50 turns per ns.
    #[test]
    fn two_workers_are_as_computed_by_hand() {
        let Expected { turns, wait } = LOCK.expected(2);
        assert!(near(turns, 8.0 / 17.0 / 50.0 * 1e9), "{turns}");
        // 2 / X - 150 - 50 by Little's law.
        assert!(near(wait, 2.0 * 17.0 * 50.0 / 8.0 - 200.0), "{wait}");
    }

    /// Mean value analysis of J. Reiser and S. Lavenberg (1980), another textbook method.
    #[test]
    fn it_agrees_with_mean_value_analysis() {
        let mut queue = 0.0;
        for workers in 1..=300 {
            let response = LOCK.critical * (1.0 + queue);
            let throughput = f64::from(workers) / (LOCK.rest + response);
            queue = throughput * response;
            let expected = LOCK.expected(workers as usize);
            assert!(near(expected.turns, throughput * 1e9), "{workers}: {expected:?}");
            assert!((expected.wait - (response - LOCK.critical)).abs() < 1e-3, "{expected:?}");
        }
    }

    #[test]
    fn the_lock_and_its_handover_limit_many_workers() {
        assert!(near(LOCK.expected(1000).turns, 1e9 / 50.0));
        let slow = OneLock { handover: 150.0, ..LOCK };
        assert!(near(slow.expected(1000).turns, 1e9 / 200.0));
        assert!(slow.expected(96).turns < 1.1 * slow.expected(1).turns, "no more than one");
    }

    #[test]
    fn the_handover_is_recovered() {
        for handover in [1.0, 80.0, 5_000.0] {
            let made = OneLock { handover, ..LOCK };
            for workers in [2, 8, 96] {
                let turns = made.expected(workers).turns;
                let found = OneLock::fitted(150.0, 50.0, workers, turns);
                assert!((found.handover - handover).abs() < 1e-2 * handover, "{found:?}");
            }
        }
    }

    #[test]
    fn without_a_loss_there_is_no_handover() {
        let free = LOCK.expected(2).turns;
        assert_eq!(OneLock::fitted(150.0, 50.0, 2, 1.1 * free).handover, 0.0);
        assert_eq!(OneLock::fitted(150.0, 50.0, 1, 1.0).handover, 0.0, "no worker to hand over to");
    }
}
