//! What do short messages suffer when the network is busy?
//!
//! Several hosts, each of them server and client, exchange the messages of a workload at a load that hurts,
//! over real sockets and links of a real rate. Each transport in turn, or several at once.
//!
//! ```text
//!   link       --link auto: the highest rate that leaves the cores idle enough
//!   base       each transport alone, one request at a time  → best possible time of each size
//!   runs       open loop at 80 % of every link, n runs      → slowdown by size
//!
//!   every run:  Site ─▶ Crew of nodes ─▶ one start instant ─▶ results, put together
//!               fresh namespaces, fresh processes, fresh connections
//! ```

mod node;
mod offered;
mod options;
mod phases;
mod run;
mod site;
mod switch;

pub use options::{Link, Mix, Options};
pub use switch::{LevelLoad, SwitchLoad};

use apus_sim::Rate;
use serde_json::Value;

use crate::error::Error;
use crate::process::{Control, Task};

/// The kind of task that [`agent`] does.
pub(crate) const JOB: &str = "cluster";

/// Share of the time that the cores have nothing to do at the rate that [`Link::Auto`] chooses, at least.
/// Source: the command line's contract.
pub const IDLE: f64 = 0.4;

/// Does one node's work in an agent.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    node::agent(task, control)
}

/// A rate that the options have been checked to allow.
fn rate(mbps: u64) -> Rate {
    Rate::from_mbps(mbps).expect("a rate within the limits of a fabric")
}
