//! Lengths of queues in the paper's switches.
//!
//! Table 1 of SIGCOMM 2018: Homa at 80 % load (docs/reference/papers.md, *Queue lengths*). The
//! digits are recalled, not verified ([`Evidence::RecalledMedium`] at least): compare orders of
//! magnitude with them, and the goals [`GOAL_CORE_MEAN_KB`] and [`GOAL_TOR_TO_HOST`], which are
//! derived from them.
//!
//! [`Evidence::RecalledMedium`]: super::Evidence::RecalledMedium

use std::fmt;
use std::sync::LazyLock;

use apus_workload::csv_table;
use serde::Deserialize;

use super::scheme::same_workload;

/// Ports of switches with the same position in the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Queue {
    /// From racks up to spines, `TOR->aggr` in the paper.
    #[serde(rename = "TOR to spine")]
    TorToSpine,
    /// From spines down to racks, `aggr->TOR` in the paper.
    #[serde(rename = "spine to TOR")]
    SpineToTor,
    /// From racks to hosts.
    #[serde(rename = "TOR to host")]
    TorToHost,
}

impl Queue {
    /// All queues, in the order of a packet's path.
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

/// Length of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueLength {
    /// Mean over time and ports, in KB.
    pub mean_kb: f64,
    /// Maximum over time and ports, in KB.
    pub max_kb: f64,
}

/// Goal for queues between racks, in KB: every mean must be below it. The maximum has no goal.
pub const GOAL_CORE_MEAN_KB: f64 = 2.0;

/// Goal for queues to hosts: both figures must be below it. Seven messages with RTTbytes granted
/// each make 68 KB of them; the rest are unscheduled bytes that happen to arrive together.
pub const GOAL_TOR_TO_HOST: QueueLength = QueueLength { mean_kb: 18.0, max_kb: 150.0 };

/// A row of the table.
#[derive(Deserialize)]
struct Record {
    workload: String,
    queue: Queue,
    mean_kb: f64,
    max_kb: f64,
}

static TABLE: LazyLock<Vec<Record>> =
    LazyLock::new(|| csv_table::rows(include_str!("queue_length.csv")));

/// Returns the length that the paper measured at 80 % load for a workload.
#[must_use]
pub fn queue_length(workload: &str, queue: Queue) -> Option<QueueLength> {
    let mut records = TABLE.iter();
    let found = records
        .find(|record| record.queue == queue && same_workload(&record.workload, workload))?;
    Some(QueueLength { mean_kb: found.mean_kb, max_kb: found.max_kb })
}
