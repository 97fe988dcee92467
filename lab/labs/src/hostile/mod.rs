//! The hostile lab: what an attacker does to a server and to an honest client, with nothing but packets.
//!
//! ```text
//!   honest client ──────▶ server        requests at random instants, a share of what the server can do
//!                            ▲
//!   attacker ────────────────┘          as many packets as one core can send, with any source address
//! ```
//!
//! The three are processes of one host, which is a namespace of its own. Each attack has new ones. Requests without an attack come
//! first, as the baseline.
//!
//! | file | content |
//! |---|---|
//! | `options` | the options |
//! | `attack` | the attacks |
//! | `packet`, `forgery`, `claims` | packets; those of the attacks that flood; the attack that claims |
//! | `attacker`, `sides` | the processes |
//! | `phases` | capacity, baseline and attacks, all runs |
//! | `report` | rows, ratios, sentences |
//!
//! # Invariants
//!
//! - **HOSTILE-1** Packets of an attacker stay in a namespace that the lab has made, and end with it.
//! - **HOSTILE-2** An attacker knows addresses, ports and this program's source. It sees no packet that is not sent to it.

mod attack;
mod attacker;
mod claims;
mod forgery;
mod options;
mod packet;
mod phases;
mod report;
mod sides;

pub use attack::Attack;
pub use options::Options;

use std::path::Path;

use serde_json::Value;

use apus_report::findings::Findings;
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Task};

/// Runs the experiment. `program` is an agent when its first argument is [`AGENT`](apus_testbed::process::AGENT).
///
/// # Errors
///
/// An option is out of range, this user may not make a namespace, or a process failed.
pub fn run(options: &Options, program: &Path) -> Result<Findings, Error> {
    phases::run(options, program)
}

/// The kind of task that [`agent`] does.
pub(crate) const JOB: &str = "lab hostile";

/// Is a server, an honest client or an attacker, in an agent.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    sides::agent(task, control)
}
