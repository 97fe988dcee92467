//! The livelock lab: the output of a router while its input grows.
//!
//! The experiment of J. Mogul and K. Ramakrishnan ("Eliminating Receive Livelock in an Interrupt-Driven
//! Kernel", USENIX 1996) on the machine at hand, with real packets:
//!
//! ```text
//!   one core                           the other core
//!   generator ── gen0 ════ in0 ──▶ router (│ filter, application, monitor) ──▶ out0 ════ far0
//!                                                                                       counted here
//! ```
//!
//! The router is a program that forwards IPv4; its [`Mode`] says who decides when it receives. Each point of
//! a curve is a rate at which packets are offered, with fresh processes, and the packets that the kernel
//! counts at the far interface meanwhile.
//!
//! | file | question |
//! |---|---|
//! | `options`, `mode` | what can be asked for; who decides when the router receives |
//! | `frame`, `routes`, `tap`, `link` | what happens to a packet; where it goes; how it comes in and out; how it waits |
//! | `priority` | who goes before whom on the router's core |
//! | `router`, `filter`, `generator`, `application` | the processes |
//! | `point`, `sweep` | one rate; all of them, of all modes, and where losses begin |
//! | `findings`, `words`, `plots`, `published`, `page` | what that means, in tables, in words, as curves, beside the paper's, in a browser |
//!
//! What is held fixed, and why, is in docs/adr/0022-what-the-livelock-lab-holds-fixed.md.
//!
//! # Invariants
//!
//! - **L1** Modes differ in *when* they do something, never in how: all of them take, route and send a packet
//!   by the same code, with one system call to take it and one to send it.
//! - **L2** Nothing is slowed down on purpose: no delays, no idle loops.
//! - **L3** Nothing of this machine is changed: the namespaces are the experiment's own and go with it, and
//!   priorities belong to its own threads.

mod application;
mod filter;
mod findings;
mod frame;
mod generator;
mod link;
mod mode;
mod options;
mod plots;
mod point;
mod priority;
mod published;
mod router;
mod routes;
mod sweep;
mod tap;
mod words;

pub use apus_report::findings::Findings;
pub use mode::Mode;
pub use options::{Filter, Options, Rates};
pub use sweep::run;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use apus_testbed::error::Error;
use apus_testbed::process::{Control, Task};

/// What kind of task this is.
pub(crate) const JOB: &str = "livelock";

/// How often a sleeper looks whether it is over. It is woken by packets before.
const LOOK_UP: Duration = Duration::from_millis(20);

/// Longest time until a part of the router is ready. Chosen by us: a hundred times what it takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which process this is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    Router(router::Setup),
    Filter(filter::Door),
    Generator { seed: u64 },
    Compute,
    Monitor,
}

/// Does the work of one process.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let part = serde_json::from_value(task.details.clone())
        .map_err(|error| Error::Peer(format!("an unexpected task: {error}")))?;
    match part {
        Part::Router(setup) => router::agent(&setup, control),
        Part::Filter(door) => filter::agent(&door, control),
        Part::Generator { seed } => generator::agent(seed, control),
        Part::Compute => application::compute(control),
        Part::Monitor => application::monitor(control),
    }
}
