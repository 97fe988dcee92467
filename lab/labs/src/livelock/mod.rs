//! The livelock lab: the output of a router while its input grows.
//!
//! The experiment of J. Mogul and K. Ramakrishnan ("Eliminating Receive Livelock in an Interrupt-Driven
//! Kernel", USENIX 1996) on this machine, with real packets:
//!
//! ```text
//!   one core                           the other core
//!   generator ── gen0 ════ in0 ──▶ router (│ filter, application, monitor) ──▶ out0 ════ far0
//!                                                                                       counted here
//! ```
//!
//! The router is a program that forwards IPv4; its [`Mode`] decides when it receives. Each point of
//! a curve is a rate at which packets are offered, with fresh processes, and the packets that the kernel
//! counts at the far interface meanwhile.
//!
//! | file | content |
//! |---|---|
//! | `options`, `mode` | the options; when the router receives |
//! | `frame`, `routes`, `tap`, `link` | packets, their routes, interfaces and queues |
//! | `priority` | priorities of threads on the router's core |
//! | `router`, `filter`, `generator`, `application` | the processes |
//! | `point`, `curve`, `sweep` | one rate; all rates of a mode; all modes, and where losses begin |
//! | `findings`, `words`, `plots`, `published` | rows, tables, sentences and charts, beside the paper's figures |
//!
//! `lab/adr/0003-reproduce-livelock-with-real-packets.md` lists what is held fixed, and why.
//!
//! # Invariants
//!
//! - **LIVELOCK-1** Modes differ in *when* they do something, never in how: all of them take, route and send a packet
//!   by the same code, with one system call to take it and one to send it.
//! - **LIVELOCK-2** There are no artificial delays and no idle loops.
//! - **LIVELOCK-3** Nothing of this machine is changed: the namespaces are the experiment's own and end with it, and
//!   priorities belong to its own threads.

mod application;
mod curve;
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

/// The kind of task that [`agent`] does.
pub(crate) const JOB: &str = "livelock";

/// Interval at which a sleeping thread checks for the end. Packets wake it earlier.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Longest time until a part of the router is ready. Chosen by us: a hundred times what it takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// The part that a process plays.
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
