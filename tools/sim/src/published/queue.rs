//! How long were queues in the paper's switches?
//!
//! Table 1 of SIGCOMM 2018: Homa at 80 % load (published numbers A.3). The digits are remembered, not read
//! again ([`Evidence::RecalledMedium`] at least): hold orders of magnitude against them, and the goals
//! [`GOAL_CORE_MEAN_KB`] and [`GOAL_TOR_TO_HOST`] that were derived from them.
//!
//! [`Evidence::RecalledMedium`]: super::Evidence::RecalledMedium

use std::fmt;

use super::same_workload;

/// Outputs of switches that have the same place in the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Queue {
    /// From racks up to spines; the paper has `TOR->aggr`.
    TorToSpine,
    /// From spines down to racks; the paper has `aggr->TOR`.
    SpineToTor,
    /// From racks to hosts.
    TorToHost,
}

impl Queue {
    /// All of them, in the order of a packet's way.
    pub const ALL: [Self; 3] = [Self::TorToSpine, Self::SpineToTor, Self::TorToHost];
}

impl fmt::Display for Queue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::TorToSpine => "TOR to spine",
            Self::SpineToTor => "spine to TOR",
            Self::TorToHost => "TOR to host",
        })
    }
}

/// How much waits at an output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueLength {
    /// Mean over time and outputs, in KB.
    pub mean_kb: f64,
    /// The greatest at any output, in KB.
    pub max_kb: f64,
}

/// What is to be reached between racks, in KB: every mean is below. For the greatest length there is no goal.
pub const GOAL_CORE_MEAN_KB: f64 = 2.0;

/// What is to be reached at the outputs to hosts: less. Seven messages with RTTbytes granted each make 68 KB of
/// them; the rest are unscheduled bytes that happen to come together.
pub const GOAL_TOR_TO_HOST: QueueLength = QueueLength { mean_kb: 18.0, max_kb: 150.0 };

/// What the paper measured at 80 % load for a workload.
#[must_use]
pub fn queue_length(workload: &str, queue: Queue) -> Option<QueueLength> {
    let (_, lengths) = TABLE.iter().find(|(name, _)| same_workload(name, workload))?;
    let (mean_kb, max_kb) = lengths[Queue::ALL.iter().position(|each| *each == queue)?];
    Some(QueueLength { mean_kb, max_kb })
}

/// Mean and maximum of each of [`Queue::ALL`].
const TABLE: [(&str, [(f64, f64); 3]); 5] = [
    ("w1", [(0.7, 21.1), (0.8, 22.4), (1.7, 58.7)]),
    ("w2", [(1.0, 30.0), (1.1, 34.1), (5.5, 93.0)]),
    ("w3", [(1.6, 50.3), (1.8, 57.1), (12.8, 117.9)]),
    ("w4", [(1.7, 82.7), (1.7, 92.2), (17.3, 146.1)]),
    ("w5", [(1.7, 93.6), (1.6, 78.1), (17.3, 126.4)]),
];
