//! The handoff lab: how a thread is woken twice for one message, and the cure.
//!
//! The Linux kernel's Homa module made an RPC known to a waiting thread before its packet was on the queue, and
//! then released the RPC's lock to handle acks of the same packet. A quick thread found nothing, went
//! back to wait, and received the RPC once more: 1.148 handoffs per request (docs/reference/papers.md,
//! *Double handoff*). This lab reproduces that over a UDP socket, with the cure beside it:
//!
//! - `publish-first`: the flaw ([`Order::PublishFirst`]);
//! - `enqueue-first`: the same code, with the two steps the other way round, as the module does it today;
//! - `apus`: the product, with a dedicated engine and with a receiver that polls the network itself.
//!
//! Each trial has a process of its own, so that no state is left from the one before (docs/reference/papers.md,
//! *Double handoff*: figures drift otherwise). One request is outstanding at a time: only then does the ratio mean
//! anything.
//!
//! The lab's receive path (`socket`) is model-checked with loom in both orders (`model`): the model finds the flaw
//! in one and nothing in the other.

#[cfg(all(test, apus_loom))]
mod model;
mod options;
mod product;
mod report;
mod socket;
mod sync;
mod trial;

pub use options::Options;
pub use socket::Order;

use serde_json::Value;

use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Spawner, Task};
use apus_testbed::repeat::Repeater;

/// Runs the experiment.
///
/// # Errors
///
/// An option does not fit, or a trial failed.
pub fn run(options: &Options, host: &Spawner) -> Result<Findings, Error> {
    options.check()?;
    let paths = trial::Path::all();
    let phases = options.runs * paths.len();
    let repeater = Repeater::of(phases, Progress::of(phases));
    let mut found = vec![Vec::new(); paths.len()];
    for run in 1..=options.runs {
        for turn in 0..paths.len() {
            let index = (run - 1 + turn) % paths.len();
            let (path, name) = (paths[index], paths[index].name());
            repeater.progress().step(&format!("trial {run} of {}: {name}", options.runs));
            let phase = format!("trial {run}");
            found[index]
                .extend(repeater.attempt(&name, &phase, || trial::start(options, path, host))?);
        }
    }
    let mut outcome = report::outcome(options, &paths, &found);
    repeater.account(&mut outcome)?;
    let lead = "Handoffs and wake-ups per message of a receive path that makes a message known before its packet is \
                queued, as the Linux kernel's Homa module did, beside its cure and apus.";
    Ok(Findings::new(outcome, "How often is a thread woken for one message?", lead).with_all(
        Vec::new(),
        Vec::new(),
        [],
    ))
}

/// The kind of task that [`agent`] does.
pub(crate) const JOB: &str = "lab handoff";

/// Does one trial in an agent.
pub(crate) fn agent(task: &Task, control: &Control) -> Result<Value, Error> {
    trial::agent(task, control)
}
