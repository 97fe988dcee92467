//! The figures of one contender.

use std::time::Duration;

use apus::Settings;
use serde_json::{Value, json};

use super::course;
use super::recovery::{Recovery, recovery};
use crate::loopback::{self, Counters, Disturbance, LoadPhase, LoadResult, Measured};
use crate::slowdown::{Curve, Summary};
use apus_measure::exchange::engine_counters;
use apus_report::result::{Figure, Row, rounded, table};
use apus_report::stats::Spread;
use apus_testbed::clock;

/// The measurements of one contender.
pub(super) struct Contender {
    pub(super) name: String,
    pub(super) settings: String,
    /// Requests per second with all of them outstanding, in each run that has a result.
    pub(super) capacity: Vec<Measured<f64>>,
    /// Requests completed in each second, in each run.
    pub(super) hold: Vec<Measured<Vec<u64>>>,
    pub(super) loads: Vec<Measured<LoadResult>>,
}

/// Observations around the disturbances of one contender.
pub(super) struct Recoveries {
    /// Recovery in each run; `None` if too few requests were completed before the disturbance.
    pub(super) runs: Vec<Option<Recovery>>,
    /// Expected upper bound of the recovery time; `None` without spare capacity.
    pub(super) bound: Option<Duration>,
}

impl Contender {
    /// Returns requests per second, the median over the runs.
    pub(super) fn median_capacity(&self) -> f64 {
        let each: Vec<f64> = self.capacity.iter().map(|run| run.result).collect();
        Spread::over(&each).median
    }

    /// Returns whether it has a result in every phase that its row needs.
    pub(super) fn is_complete(&self) -> bool {
        !self.capacity.is_empty() && !self.loads.is_empty()
    }

    /// Returns requests per second in each run, with the number of the run.
    pub(super) fn capacities(&self) -> Vec<(usize, f64)> {
        self.capacity.iter().map(|run| (run.run, run.result)).collect()
    }

    /// Returns a figure of each run under load, with the number of the run.
    pub(super) fn over_loads(&self, figure: impl Fn(&LoadResult) -> f64) -> Vec<(usize, f64)> {
        self.loads.iter().map(|run| (run.run, figure(&run.result))).collect()
    }

    pub(super) fn curve(&self) -> Curve {
        let runs: Vec<&Summary> = self.loads.iter().map(|run| &run.result.summary).collect();
        Curve::of(&self.name, &runs)
    }

    /// Returns the recoveries; `None` without a disturbance.
    pub(super) fn recoveries(
        &self,
        load: &LoadPhase,
        disturbance: Option<Disturbance>,
    ) -> Option<Recoveries> {
        let length = clock::as_nanoseconds(load.window?);
        let of = |run: &Measured<LoadResult>| {
            recovery(&run.result.windows, length, run.disturbed.as_ref()?)
        };
        Some(Recoveries {
            runs: self.loads.iter().map(of).collect(),
            bound: course::bound(disturbance?, load.rate / self.median_capacity()),
        })
    }

    /// Returns the row.
    pub(super) fn row(
        &self,
        curve: &Curve,
        load: &LoadPhase,
        recoveries: Option<&Recoveries>,
    ) -> Row {
        let loads = &self.loads;
        let own_load = load.rate / self.median_capacity();
        let row = Row::new(&self.name)
            .with_spread("capacity_krps", &self.capacity, |run| run.result / 1e3)
            .with_spread("completed", loads, |run| run.result.kept_up)
            .with_spread("short_p50", loads, |run| run.result.summary.short.p50)
            .with_spread("short_p99", loads, |run| run.result.summary.short.p99)
            .with_spread("short_p50_us", loads, |run| run.result.summary.short_us.p50)
            .with_spread("short_p99_us", loads, |run| run.result.summary.short_us.p99)
            .with_spread("all_p50", loads, |run| run.result.summary.all.p50)
            .with_spread("all_p99", loads, |run| run.result.summary.all.p99);
        let row = self.with_hold(self.with_resends(row));
        let row = match recoveries {
            Some(recoveries) => recoveries.add_to(row),
            None => row,
        };
        let row = row
            .with("own_load", Figure::Detail(json!(rounded(own_load))))
            .with_sum("messages", loads, |run| run.result.summary.messages)
            .with("errors", Figure::Count(self.errors()))
            .with("by_size", Figure::Detail(json!(curve.by_size)));
        let known = loads.iter().any(|run| !run.client.is_empty());
        row.with_known("counters", known.then(|| Figure::Detail(self.counters())))
    }

    /// Adds the share of resent bytes, if the contender counts them.
    fn with_resends(&self, row: Row) -> Row {
        let share = |name: &str, row: Row, shares: Option<Vec<f64>>| {
            let figure = shares.filter(|shares| !shares.is_empty());
            row.with_known(name, figure.map(|shares| Figure::over(&shares, |share| *share)))
        };
        let row =
            share("resent_share", row, self.loads.iter().map(Measured::resent_share).collect());
        let capacity = self.capacity.iter().map(Measured::resent_share).collect();
        let row = share("capacity_resent_share", row, capacity);
        let hold = self.hold.iter().map(Measured::resent_share).collect();
        let row = share("hold_resent_share", row, hold);
        let count = |counter: &str| -> Option<Vec<f64>> {
            self.loads.iter().map(|run| run.count(counter).map(|count| count as f64)).collect()
        };
        let row = share("needless_resends", row, count("resent_discards"));
        share("datagrams_overflowed", row, count("driver_datagrams_overflowed"))
    }

    /// Adds how steady the contender is with all requests outstanding.
    fn with_hold(&self, row: Row) -> Row {
        if self.hold.is_empty() {
            return row;
        }
        let each: Vec<&[u64]> = self.hold.iter().map(|run| &run.result[..]).collect();
        row.with_spread("hold_krps", &self.hold, |run| median_second(run) / 1e3)
            .with_spread("hold_worst_over_median", &self.hold, worst_second)
            .with("hold_by_second", Figure::Detail(json!(each)))
    }

    /// Returns thousands of requests in the median second, and the worst second relative to it;
    /// `None` without a hold phase.
    pub(super) fn hold_in_words(&self) -> Option<[String; 2]> {
        let words = |figure: fn(&Measured<Vec<u64>>) -> f64| {
            let each: Vec<f64> = self.hold.iter().map(figure).collect();
            table::spread_in_words(&Spread::over(&each))
        };
        let both = || [words(|run| median_second(run) / 1e3), words(worst_second)];
        (!self.hold.is_empty()).then(both)
    }

    pub(super) fn errors(&self) -> u64 {
        self.loads.iter().map(|run| run.result.errors).sum()
    }

    /// Returns the counters of each side, all runs under load together.
    fn counters(&self) -> Value {
        let sum = |side: fn(&Measured<LoadResult>) -> &Counters| {
            let mut sum = Counters::new();
            for (name, count) in self.loads.iter().flat_map(side) {
                *sum.entry(name.clone()).or_default() += count;
            }
            sum
        };
        json!({ "client": sum(|run| &run.client), "server": sum(|run| &run.server) })
    }

    /// Returns a note about this contender's runs, if they had problems.
    pub(super) fn trouble(&self) -> Option<String> {
        let kept_up = self.loads.iter().map(|run| run.result.kept_up).fold(1.0, f64::min);
        loopback::trouble(&self.name, self.errors(), kept_up)
    }

    /// Returns a note with the repair if the runs lost datagrams at full buffers.
    pub(super) fn overflow(&self) -> Option<String> {
        let counter = "driver_datagrams_overflowed";
        let overflowed = self.loads.iter().filter_map(|run| run.count(counter)).sum();
        engine_counters::overflow_note(&self.name, overflowed, &Settings::default())
    }
}

/// Returns the requests that were completed in the median second.
fn median_second(run: &Measured<Vec<u64>>) -> f64 {
    Spread::over(&run.result.iter().map(|count| *count as f64).collect::<Vec<_>>()).median
}

/// Returns the ratio of the requests in the worst second to those in the median second.
fn worst_second(run: &Measured<Vec<u64>>) -> f64 {
    let worst = run.result.iter().copied().min().unwrap_or(0);
    worst as f64 / median_second(run).max(1.0)
}

impl<T> Measured<T> {
    /// Returns the sum of a counter over both sides; `None` if the contender has no such counter.
    fn count(&self, counter: &str) -> Option<u64> {
        Some(self.client.get(counter)? + self.server.get(counter)?)
    }

    /// Returns resent bytes as a share of all sent bytes of DATA packets.
    fn resent_share(&self) -> Option<f64> {
        let (resent, sent) = (self.count("resent_bytes")?, self.count("data_bytes")?);
        Some(resent as f64 / sent.max(1) as f64)
    }
}

impl Recoveries {
    /// Returns the time of each run in milliseconds, shortest first; runs without a recovery are
    /// last.
    pub(super) fn milliseconds(&self) -> Vec<Option<f64>> {
        let mut runs: Vec<Option<u64>> = self.runs.iter().map(|run| run.as_ref()?.after).collect();
        runs.sort_by_key(|after| (after.is_none(), *after));
        runs.into_iter().map(|after| after.map(|after| rounded(after as f64 / 1e6))).collect()
    }

    /// Returns the median and the maximum recovery time in milliseconds; `None` if that run did not
    /// recover.
    pub(super) fn median_and_max(&self) -> (Option<f64>, Option<f64>) {
        let runs = self.milliseconds();
        let at = |index: usize| runs.get(index).copied().flatten();
        (at(runs.len() / 2), at(runs.len().saturating_sub(1)))
    }

    /// Returns the median of short messages before the disturbance in microseconds; `None` if no
    /// message was completed.
    pub(super) fn before_us(&self) -> Option<f64> {
        let before = self.runs.iter().flatten().map(|run| run.before as f64 / 1e3);
        let before: Vec<f64> = before.collect();
        (!before.is_empty()).then(|| rounded(Spread::over(&before).median))
    }

    /// Returns the number of runs that recovered.
    pub(super) fn recovered(&self) -> usize {
        self.milliseconds().iter().flatten().count()
    }

    fn add_to(&self, row: Row) -> Row {
        let (median, max) = self.median_and_max();
        let detail = |value: Value| Figure::Detail(value);
        row.with("recovery_ms", detail(json!(median)))
            .with("recovery_ms_max", detail(json!(max)))
            .with("recovery_ms_runs", detail(json!(self.milliseconds())))
            .with("recovery_bound_ms", detail(json!(self.bound_ms())))
            .with("recovered_runs", detail(json!(self.recovered())))
            .with("before_p50_us", detail(json!(self.before_us())))
    }

    /// Returns the bound in milliseconds.
    pub(super) fn bound_ms(&self) -> Option<f64> {
        self.bound.map(|bound| rounded(bound.as_secs_f64() * 1e3))
    }
}
