//! Sweeps: many experiments of the simulator, on this machine or on many.
//!
//! A sweep is a [`Plan`]: the same experiment with several loads, workloads, topologies, parameters
//! and seeds. Each of its points is one [`Experiment`](apus_sim::Experiment), a pure function of
//! its configuration and seed, so points can run anywhere and in any order:
//!
//! ```text
//!   SweepOptions ─▶ Plan ─▶ points ─▶ Shard ─▶ execute ─▶ PointRecord ─▶ lines ─▶ merge ─▶ report
//!                (a name)          (a part)  (threads)                 (a file)
//! ```
//!
//! # Invariants
//!
//! - **SWEEP-1** Equal options give equal plans with equal names, in any process; a name belongs to
//!   one plan.
//! - **SWEEP-2** A record does not depend on the machine or the time of its run.

mod execute;
mod merge;
mod options;
mod plan;
mod record;
pub mod report;
mod shard;

pub use execute::{Done, Status, execute};
pub use merge::{MergeError, merge};
pub use options::{
    Axis, MOST_MESSAGES, OptionsError, PeerModel, Preset, Processors, SweepOptions, Transport,
};
pub use plan::{Plan, PlanPoint};
pub use record::{Bin, Figures, PointRecord, Queue, Queues, Recovery, Slowdown};
pub use shard::{Choice, Shard, ShardError};

pub use apus_report::lines::{LinesError, write};

/// A file that collects the points of a sweep.
pub type Lines = apus_report::lines::Lines<PointRecord>;
