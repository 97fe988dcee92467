//! The forecast for hosts with more cores: a model, not a measurement.

use serde_json::{Value, json};

use super::contender::Contender;
use super::curve::{Curve, HOLD, median_kops};
use super::exchange;
use super::options::Tasks;
use super::queueing::{Expected, OneLock};
use apus_report::result::rounded;

/// The expectation for processes, or for threads, with a core each.
#[derive(Clone, Debug)]
pub(super) struct Forecast {
    pub(super) tasks: Tasks,
    /// The global lock as it was measured here.
    pub(super) lock: OneLock,
    /// The number of workers whose rates the handover and the rate of a `fine-grained` worker were
    /// fitted to.
    pub(super) fitted_at: usize,
    pub(super) points: Vec<Ahead>,
}

/// The expectation for one number of workers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    pub(super) workers: usize,
    /// Thousands of operations per second with one lock.
    pub(super) global: f64,
    /// Mean wait for the lock in nanoseconds.
    pub(super) wait: f64,
    /// Thousands of operations per second without the lock: the rate of one worker times the
    /// workers.
    pub(super) fine: f64,
}

/// Least number of workers that the model extends to: as in FreeBSD's figures.
const FAR: usize = 96;

/// Acquisitions of the lock per operation.
const TURNS: f64 = exchange::TURNS as f64;

impl Forecast {
    /// Fits a model to the curves of `tasks`, which were measured on `cores` cores; `None` without
    /// both contenders.
    pub(super) fn of(tasks: Tasks, curves: &[Curve], cores: usize) -> Option<Self> {
        let find =
            |contender| curves.iter().find(|it| it.tasks == tasks && it.contender == contender);
        let (global, fine) = (find(Contender::GlobalLock)?, find(Contender::FineGrained)?);
        let critical = global.first().runs.median(HOLD)?.max(1.0);
        // Nanoseconds per operation of a single worker.
        let operation = 1e6 / median_kops(global.first());
        let rest = (operation / TURNS - critical).max(1.0);
        let within = global.last_within(cores);
        let turns = TURNS * 1e3 * median_kops(within);
        let lock = OneLock::fitted(rest, critical, within.key, turns);
        let fitted_at = within.key;
        let fine = fine.last_within(cores);
        let each = median_kops(fine) / fine.key as f64;
        let ahead = |workers: usize| {
            let Expected { turns, wait } = lock.expected(workers);
            Ahead { workers, global: turns / TURNS / 1e3, wait, fine: each * workers as f64 }
        };
        let points = counts(cores).into_iter().map(ahead).collect();
        Some(Self { tasks, lock, fitted_at, points })
    }

    /// Returns the point with the most workers.
    pub(super) fn last(&self) -> Ahead {
        *self.points.last().expect("one worker at least")
    }

    /// Returns the model of a contender as JSON; `None` if it has none.
    pub(super) fn json(&self, contender: Contender) -> Option<Value> {
        let of = |value: fn(&Ahead) -> Value| self.points.iter().map(value).collect::<Vec<_>>();
        match contender {
            Contender::GlobalLock => Some(json!({
                "kind": "a model, not measured: one server, a constant cost to hand the lock over",
                "critical_section_ns": rounded(self.lock.critical),
                "rest_ns": rounded(self.lock.rest),
                "handover_ns": rounded(self.lock.handover),
                "fitted_at": self.fitted_at,
                "points": of(|it| json!({
                    "n": it.workers,
                    "kops": rounded(it.global),
                    "wait_ns": rounded(it.wait),
                })),
            })),
            Contender::FineGrained => Some(json!({
                "kind": "a model, not measured: as much for each worker, whatever their number",
                "fitted_at": self.fitted_at,
                "points": of(|it| json!({ "n": it.workers, "kops": rounded(it.fine) })),
            })),
            Contender::Unix => None,
        }
    }
}

/// Returns the powers of two and FreeBSD's number, up to twice the number of cores.
fn counts(cores: usize) -> Vec<usize> {
    let most = FAR.max(2 * cores);
    let powers = (0..).map(|power| 1 << power).take_while(|count| *count <= most);
    let mut counts: Vec<usize> = powers.chain([FAR, most]).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contention::curve::made_up::curve;

    fn forecast(cores: usize, two_with_one_lock: f64) -> Forecast {
        let curves = [
            curve(Contender::GlobalLock, Tasks::Threads, &[(1, &[5e3]), (2, &[two_with_one_lock])]),
            curve(Contender::FineGrained, Tasks::Threads, &[(1, &[6e3]), (2, &[11e3])]),
        ];
        Forecast::of(Tasks::Threads, &curves, cores).unwrap()
    }

    /// An operation takes 200 ns; the lock is held twice in it, for 50 ns each.
    #[test]
    fn the_model_passes_through_what_was_measured() {
        let found = forecast(2, 3e3);
        assert_eq!((found.lock.critical, found.lock.rest, found.fitted_at), (50.0, 50.0, 2));
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-3;
        let [one, two] = [found.points[0], found.points[1]];
        assert!(near(one.global, 5e3) && near(two.global, 3e3), "{found:?}");
        assert!(near(one.fine, 5.5e3) && near(two.fine, 11e3), "{found:?}");
        let last = found.last();
        assert_eq!(last.workers, 96);
        assert!(near(last.fine, 96.0 * 5.5e3) && last.global <= two.global, "{found:?}");
        assert!(last.wait > 10.0 * two.wait, "{found:?}");
    }

    #[test]
    fn workers_that_share_a_core_show_no_handover() {
        let found = forecast(1, 3e3);
        assert_eq!((found.fitted_at, found.lock.handover), (1, 0.0));
        assert!(found.points[1].global > 5e3, "queueing alone");
    }

    #[test]
    fn it_extends_to_the_published_figures_and_beyond_the_cores() {
        assert_eq!(counts(2), [1, 2, 4, 8, 16, 32, 64, 96]);
        assert_eq!(counts(64), [1, 2, 4, 8, 16, 32, 64, 96, 128]);
        assert_eq!(counts(100).last(), Some(&200));
    }

    #[test]
    fn models_are_called_models_and_the_kernel_has_none() {
        let found = forecast(2, 3e3);
        for contender in [Contender::GlobalLock, Contender::FineGrained] {
            let json = found.json(contender).unwrap();
            assert!(json["kind"].as_str().unwrap().starts_with("a model, not measured"), "{json}");
            assert_eq!(json["points"].as_array().unwrap().len(), found.points.len());
        }
        assert_eq!(found.json(Contender::Unix), None);
        assert!(Forecast::of(Tasks::Processes, &[], 2).is_none());
    }
}
