//! The kill of a process halfway through a run, and its effect on the others.
//!
//! The coordinator kills the first process of the first host (SIGKILL); this process usually owns
//! the page of its host group. The others receive the time in advance, and no request to the
//! process is due after it. Earlier requests to the process are counted separately, and its own
//! requests have no result.

use serde::{Deserialize, Serialize};

use crate::contenders::load::{AsideCounts, Request};
use crate::slowdown::{Scale, Slowdowns};

/// Minimum length of a run with a kill, in seconds: some of the run must remain after the second of
/// recovery.
pub(super) const SHORTEST_RUN: f64 = 3.0;

/// Expected recovery time of the others, in nanoseconds.
const RECOVERY: u64 = 1_000_000_000;

/// Periods of a run: before the kill, the second after it, the rest.
const PERIODS: usize = 3;

/// Index of the killed process among the processes of its transport.
pub(super) const VICTIM: usize = 0;

/// Plan of the kill, as sent to the other processes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct KillPlan {
    /// Nanoseconds from the start of the load to the kill.
    pub(super) at: u64,
    /// Index of the killed process among the peers; `None` in the processes of its host, since they
    /// do not call it.
    pub(super) peer: Option<usize>,
}

impl KillPlan {
    /// Returns whether a request is due in spite of the kill.
    pub(super) fn is_due(&self, request: Request) -> bool {
        self.peer != Some(request.peer) || request.due < self.at
    }
}

/// The slowdowns at one process, by period.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AroundKill {
    plan: KillPlan,
    periods: [Slowdowns; PERIODS],
    /// Requests to the killed process that were due before.
    pub(super) to_killed: AsideCounts,
}

impl AroundKill {
    /// No messages yet.
    pub(super) fn new(plan: KillPlan, scale: &Scale) -> Self {
        let periods = std::array::from_fn(|_| Slowdowns::new(scale.clone()));
        Self { plan, periods, to_killed: AsideCounts::default() }
    }

    /// Records a request to a process that was not killed, and its latency in nanoseconds.
    pub(super) fn record(&mut self, request: Request, latency: u64) {
        let period = match request.due.checked_sub(self.plan.at) {
            None => 0,
            Some(after) if after < RECOVERY => 1,
            Some(_) => 2,
        };
        self.periods[period].record(request.size, latency);
    }
}

/// Effect of the kill of a process on the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KillEffect {
    /// Requests between all other processes.
    pub others: Recovery,
    /// The subset sent by processes of the killed process's host.
    pub host: Recovery,
    /// Requests to the killed process that were due before its end.
    pub to_killed: AsideCounts,
    /// Requests of the killed process that were due before its end, all of them without a result.
    pub from_killed: u64,
    /// Delay of the kill after its planned time, in milliseconds. Periods start at the planned
    /// time.
    pub late_ms: f64,
}

/// Short messages before and after a kill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// Requests due before the kill.
    pub before: Period,
    /// Requests due within a second after the kill.
    pub first_second: Period,
    /// Requests due later.
    pub later: Period,
}

/// Short messages of a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Period {
    /// 99th percentile of their slowdowns; 0 without messages.
    pub p99: f64,
    /// Number of messages.
    pub messages: u64,
}

impl KillEffect {
    /// Combines the results of the surviving processes. `from_killed` requests of the killed
    /// process were due before its end, `late` nanoseconds after the planned time.
    pub(super) fn of(nodes: &[AroundKill], from_killed: u64, late: u64) -> Self {
        let mut to_killed = AsideCounts::default();
        nodes.iter().for_each(|node| to_killed.add(node.to_killed));
        let neighbours = nodes.iter().filter(|node| node.plan.peer.is_none());
        Self {
            others: Recovery::of(nodes.iter()),
            host: Recovery::of(neighbours),
            to_killed,
            from_killed,
            late_ms: late as f64 / 1e6,
        }
    }
}

impl Recovery {
    fn of<'a>(mut nodes: impl Iterator<Item = &'a AroundKill>) -> Self {
        let Some(first) = nodes.next() else { return Self::default() };
        let mut periods = first.periods.clone();
        for node in nodes {
            for (sum, period) in periods.iter_mut().zip(&node.periods) {
                sum.merge(period);
            }
        }
        let [before, first_second, later] = periods.map(|slowdowns| Period {
            p99: slowdowns.summary().short.p99,
            messages: slowdowns.short_messages(),
        });
        Self { before, first_second, later }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 5_000_000_000;

    fn node(peer: Option<usize>) -> AroundKill {
        let scale = Scale { best: vec![(100, 1_000), (9_000, 1)], groups: vec![9_000], short: 100 };
        AroundKill::new(KillPlan { at: AT, peer }, &scale)
    }

    fn request(size: u32, peer: usize, due: u64) -> Request {
        Request { size, peer, due }
    }

    #[test]
    fn nothing_is_due_to_a_killed_process() {
        let plan = KillPlan { at: AT, peer: Some(2) };
        assert!(plan.is_due(request(100, 2, AT - 1)) && !plan.is_due(request(100, 2, AT)));
        assert!(plan.is_due(request(100, 1, AT + 1)));
        assert!(KillPlan { at: AT, peer: None }.is_due(request(100, 2, AT + 1)));
    }

    #[test]
    fn short_messages_are_held_apart_by_period_and_by_host() {
        let (mut near, mut far) = (node(None), node(Some(0)));
        for (due, slowdown) in [(0, 2), (AT - 1, 2), (AT, 30), (AT + RECOVERY - 1, 30)] {
            near.record(request(100, 1, due), 1_000 * slowdown);
        }
        near.record(request(9_000, 1, AT), 999);
        far.record(request(100, 1, AT + RECOVERY), 5_000);
        far.to_killed = AsideCounts { due: 4, completed: 3 };
        let effect = KillEffect::of(&[near, far], 7, 2_000_000);
        let of = |recovery: Recovery| {
            let Recovery { before, first_second, later } = recovery;
            // Histograms keep three digits.
            [before, first_second, later].map(|period| (period.p99.round(), period.messages))
        };
        assert_eq!(of(effect.others), [(2.0, 2), (30.0, 2), (5.0, 1)]);
        assert_eq!(of(effect.host), [(2.0, 2), (30.0, 2), (0.0, 0)]);
        assert_eq!((effect.to_killed.due, effect.from_killed, effect.late_ms), (4, 7, 2.0));
    }
}
