//! The load experiment: a published workload with the processors as the bottleneck, optionally
//! disturbed.
//!
//! One server and one client over loopback, so that no link is slower than the processors. Every
//! contender carries the same requests at the same rate, a share of the capacity of apus. On
//! request, the number of outstanding requests is held for a while, the server stalls, or requests
//! arrive in a burst.
//!
//! ```text
//!   unloaded   one request at a time, each size       → best possible time of each size
//!   capacity   200 requests always outstanding, n runs → requests per second
//!   hold       the same for a long time, n runs → worst second relative to the median second
//!   load       open loop at 80 % of it, n runs         → slowdown, share completed, bytes resent
//!     stall, burst   once in each of these runs        → time until the median is back
//! ```

mod contender;
mod course;
mod findings;
mod options;
mod phases;
mod recovery;

pub use crate::loopback::Burst;
pub use options::{LoadOptions, Path};

use apus_report::experiment::Experiment;
use apus_report::findings::Findings;
use apus_testbed::error::Error;
use apus_testbed::process::Spawner;

impl Experiment for LoadOptions {
    type Error = Error;

    fn run(&self) -> Result<Findings, Error> {
        run(self, &Spawner::this_program()?)
    }
}

/// Runs the experiment.
///
/// # Errors
///
/// An option is out of range, or a contender failed.
pub fn run(options: &LoadOptions, host: &Spawner) -> Result<Findings, Error> {
    phases::run(options, host)
}
