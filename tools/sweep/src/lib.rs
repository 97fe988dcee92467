//! Sweeps: many experiments of the simulator, on this machine or on many.
//!
//! A sweep is a [`Plan`]: the same question about several loads, workloads, topologies, parameters and
//! seeds. Each of its points is one [`Experiment`](apus_sim::Experiment), a pure function of its configuration
//! and seed, so that it does not matter where and in which order points run:
//!
//! ```text
//!   Options ─▶ Plan ─▶ points ─▶ Shard ─▶ execute ─▶ Record ─▶ lines ─▶ merge ─▶ report
//!             (a name)          (a part)  (threads)           (a file)
//! ```
//!
//! # Invariants
//!
//! - **W1** Equal options give equal plans with equal names, in any process; a name belongs to one plan.
//! - **W2** A record holds nothing that depends on where or when it was made: neither clocks nor machines.

mod execute;
mod merge;
mod options;
mod plan;
mod record;
pub mod report;
mod shard;

pub use execute::{Done, Status, execute};
pub use merge::{MergeError, merge};
pub use options::{Axis, MOST_MESSAGES, Options, OptionsError, PeerModel, Preset, Transport};
pub use plan::{Plan, Point};
pub use record::{Bin, Figures, Queue, Queues, Record, Slowdown};
pub use shard::{Choice, Shard, ShardError};

pub use apus_report::lines::{LinesError, write};

/// A file that collects the points of a sweep.
pub type Lines = apus_report::lines::Lines<Record>;
