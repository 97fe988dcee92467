//! Where do the microseconds of short RPCs go?
//!
//! For each stage ([`super::stages`]) of the RPCs that are chosen and of which the trace has all, from call to return:
//! its mean, and its percentiles, over all these RPCs. A stage that an RPC does not have counts as 0, so that the means
//! of the stages add up to the mean round trip, and their medians nearly to the median. Both sums are shown beside what
//! the client measured (`call` to `returned`), and by how much they differ. RPCs over the network and through shared
//! memory are told apart.

use super::stages::{STAGES, Stage, in_order, is_local, stage, stages};
use super::{Distribution, Filter, micros};
use crate::merge::{Call, Merged};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// The report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timeline {
    /// Over the network, and through memory; those of which there are RPCs.
    pub ways: Vec<Group>,
    /// RPCs that were chosen of which the trace lacks the call or the return.
    pub incomplete: usize,
}

/// RPCs that went the same way.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// `network` or `memory`.
    pub way: &'static str,
    /// The stages that some RPC has, in their order.
    pub stages: Vec<Line>,
    /// From call to return, as the client measured it.
    pub rtt: Distribution,
}

/// A stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Which.
    pub stage: Stage,
    /// How many RPCs have it.
    pub rpcs: usize,
    /// How long it took, of all RPCs.
    pub times: Distribution,
}

impl Timeline {
    /// Of the RPCs that `filter` admits.
    #[must_use]
    pub fn of(merged: &Merged, filter: &Filter) -> Self {
        let (mut network, mut memory, mut incomplete) = (Vec::new(), Vec::new(), 0);
        for call in filter.calls(merged) {
            match Times::of(call) {
                Some(times) if is_local(call) => memory.push(times),
                Some(times) => network.push(times),
                None => incomplete += 1,
            }
        }
        let groups = [Group::of("network", &network), Group::of("memory", &memory)];
        Self { ways: groups.into_iter().flatten().collect(), incomplete }
    }
}

/// How long the stages of an RPC took, and all of it.
struct Times {
    stages: [Option<i64>; STAGES],
    rtt: i64,
}

impl Times {
    fn of(call: &Call) -> Option<Self> {
        Some(Self { stages: stages(call)?, rtt: call.rtt()? })
    }
}

impl Group {
    fn of(way: &'static str, all: &[Times]) -> Option<Self> {
        let line = |number: usize| {
            let rpcs = all.iter().filter(|times| times.stages[number].is_some()).count();
            let times = all.iter().map(|times| times.stages[number].unwrap_or(0)).collect();
            (rpcs > 0).then(|| Line { stage: stage(number), rpcs, times })
        };
        let rtt = all.iter().map(|times| times.rtt).collect();
        let stages = in_order().filter_map(line).collect();
        (!all.is_empty()).then_some(Self { way, stages, rtt })
    }

    /// The means of all stages together, in nanoseconds.
    #[must_use]
    pub fn sum_of_means(&self) -> f64 {
        self.stages.iter().map(|line| line.times.mean()).sum()
    }

    /// The medians of all stages together, in nanoseconds.
    #[must_use]
    pub fn sum_of_medians(&self) -> i64 {
        self.stages.iter().map(|line| line.times.median()).sum()
    }

    /// By how many percent the means, and the medians, are more than what the client measured.
    #[must_use]
    pub fn differences(&self) -> [f64; 2] {
        let percent = |sum: f64, rtt: f64| 100.0 * (sum - rtt) / rtt.max(1.0);
        [
            percent(self.sum_of_means(), self.rtt.mean()),
            percent(self.sum_of_medians() as f64, self.rtt.median() as f64),
        ]
    }
}

impl Serialize for Group {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let [means, medians] = self.differences();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("way", self.way)?;
        map.serialize_entry("rpcs", &self.rtt.count())?;
        map.serialize_entry("stages", &self.stages)?;
        map.serialize_entry("sum_of_means_us", &micros(self.sum_of_means()))?;
        map.serialize_entry("sum_of_medians_us", &micros(self.sum_of_medians() as f64))?;
        map.serialize_entry("rtt", &self.rtt)?;
        map.serialize_entry("means_differ_percent", &two_digits(means))?;
        map.serialize_entry("medians_differ_percent", &two_digits(medians))?;
        map.end()
    }
}

fn two_digits(value: f64) -> f64 {
    // Not -0.
    (value * 100.0).round() / 100.0 + 0.0
}

impl Serialize for Line {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("place", self.stage.place)?;
        map.serialize_entry("stage", self.stage.name)?;
        map.serialize_entry("rpcs", &self.rpcs)?;
        map.serialize_entry("times", &self.times)?;
        map.end()
    }
}
