//! One client and one server of each transport over loopback, with the messages of a workload.
//!
//! Path: UDP or TCP over the loopback interface, without shared memory. The bottleneck is the
//! processors, not a link. Called by the experiment `load`.
//!
//! ```text
//!   Bench ── measure ──▶ server agent, client agent    fresh processes for each phase
//!     unloaded   one request at a time, each size    → best possible time of each size
//!     capacity   `n` requests always outstanding       → requests completed per second
//!     hold       the same for a long time              → requests completed in each second
//!     load       open loop, or disturbed on request  → slowdowns, and completed requests
//! ```

mod bench;
mod disturbance;
mod sides;
mod trouble;
mod windows;

pub(crate) use bench::{Bench, Measured};
pub use disturbance::Burst;
pub(crate) use disturbance::{Disturbance, parse_period};
pub(crate) use sides::{Counters, JOB, LoadPhase, LoadResult, Messages, contenders};
pub(crate) use trouble::trouble;
pub(crate) use windows::Window;

use apus_testbed::error::Error;
use apus_testbed::process::{Control, Task};
use serde_json::Value;

/// Runs one side in an agent.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    sides::agent(task, control)
}
