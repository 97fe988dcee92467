//! The demo: the tail latency of a published workload over apus and over TCP, on this machine.
//!
//! A server and a client in separate processes exchange messages of a published workload, first one
//! by one, then as fast as they can, then at a load that leaves every contender some air. Requests
//! are due at random instants, whether or not earlier ones are done. Each contender carries the same
//! requests.
//!
//! ```text
//!   unloaded   one request at a time, each size      → best possible time of each size
//!   capacity   200 requests always outstanding         → 100 % = what the slowest contender completes
//!   load       open loop at 80 % of that, n runs     → slowdown by size
//! ```

mod findings;
mod options;
mod phases;

pub use options::Options;

use apus_report::findings::Findings;
use apus_testbed::error::Error;
use apus_testbed::process::Spawner;

/// Runs the demo.
///
/// # Errors
///
/// An option is out of range, or a contender failed.
pub fn run(options: &Options, host: &Spawner) -> Result<Findings, Error> {
    phases::run(options, host)
}
