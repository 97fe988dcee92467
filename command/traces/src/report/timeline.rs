//! Timeline: mean duration of each stage of short RPCs.
//!
//! For the matching RPCs with a complete trace from call to return, the report contains mean and
//! percentiles of each stage ([`super::stages`]). An absent stage counts as 0, so that the means
//! of the stages add up to the mean round trip, and their medians nearly to the median. Both sums
//! are compared with the round trip that the client measured (`call` to `returned`). RPCs over the
//! network and through shared memory are separate.

use super::distribution::{Distribution, micros};
use super::filter::RpcFilter;
use super::stages::{STAGES, Stage, in_order, is_local, stage, stages};
use crate::merge::{MergedTraces, TracedRpc};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// Report on stages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timeline {
    /// Network and shared memory, each only if it has RPCs.
    #[serde(rename = "ways")]
    pub groups: Vec<MediumTimeline>,
    /// Number of matching RPCs whose call or return is missing from the trace.
    pub incomplete: usize,
}

/// RPCs over the same medium.
#[derive(Clone, Debug, PartialEq)]
pub struct MediumTimeline {
    /// `network` or `memory`.
    pub medium: &'static str,
    /// Stages that occur, in order.
    pub stages: Vec<StageLine>,
    /// Round trips measured by the client.
    pub rtt: Distribution,
}

/// Durations of a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct StageLine {
    /// The stage.
    pub stage: Stage,
    /// Number of RPCs with this stage.
    pub rpcs: usize,
    /// Durations over all RPCs of the group.
    pub times: Distribution,
}

impl Timeline {
    /// Builds the report on the RPCs that match `filter`.
    #[must_use]
    pub fn of(merged: &MergedTraces, filter: &RpcFilter) -> Self {
        let (mut network, mut memory, mut incomplete) = (Vec::new(), Vec::new(), 0);
        for rpc in filter.rpcs(merged) {
            match RpcStages::of(rpc) {
                Some(times) if is_local(rpc) => memory.push(times),
                Some(times) => network.push(times),
                None => incomplete += 1,
            }
        }
        let groups =
            [MediumTimeline::of("network", &network), MediumTimeline::of("memory", &memory)];
        Self { groups: groups.into_iter().flatten().collect(), incomplete }
    }
}

/// Stages and round trip of an RPC.
struct RpcStages {
    stages: [Option<i64>; STAGES],
    rtt: i64,
}

impl RpcStages {
    fn of(rpc: &TracedRpc) -> Option<Self> {
        Some(Self { stages: stages(rpc)?, rtt: rpc.rtt()? })
    }
}

impl MediumTimeline {
    fn of(medium: &'static str, all: &[RpcStages]) -> Option<Self> {
        let line = |number: usize| {
            let rpcs = all.iter().filter(|times| times.stages[number].is_some()).count();
            let times = all.iter().map(|times| times.stages[number].unwrap_or(0)).collect();
            (rpcs > 0).then(|| StageLine { stage: stage(number), rpcs, times })
        };
        let rtt = all.iter().map(|times| times.rtt).collect();
        let stages = in_order().filter_map(line).collect();
        (!all.is_empty()).then_some(Self { medium, stages, rtt })
    }

    /// Returns the sum of the stages' means in nanoseconds.
    #[must_use]
    pub fn sum_of_means(&self) -> f64 {
        self.stages.iter().map(|line| line.times.mean()).sum()
    }

    /// Returns the sum of the stages' medians in nanoseconds.
    #[must_use]
    pub fn sum_of_medians(&self) -> i64 {
        self.stages.iter().map(|line| line.times.median()).sum()
    }

    /// Returns the percentages by which the sums of means and of medians exceed the measured round
    /// trip.
    #[must_use]
    pub fn differences(&self) -> [f64; 2] {
        let percent = |sum: f64, rtt: f64| 100.0 * (sum - rtt) / rtt.max(1.0);
        [
            percent(self.sum_of_means(), self.rtt.mean()),
            percent(self.sum_of_medians() as f64, self.rtt.median() as f64),
        ]
    }
}

impl Serialize for MediumTimeline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let [means, medians] = self.differences();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("way", self.medium)?;
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
    // Avoids -0.
    (value * 100.0).round() / 100.0 + 0.0
}

impl Serialize for StageLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("place", self.stage.place)?;
        map.serialize_entry("stage", self.stage.name)?;
        map.serialize_entry("rpcs", &self.rpcs)?;
        map.serialize_entry("times", &self.times)?;
        map.end()
    }
}
