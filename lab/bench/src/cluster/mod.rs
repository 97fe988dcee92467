//! The cluster benchmark: slowdown of short messages when the network is busy.
//!
//! Several hosts, each both server and client, exchange the messages of a workload at high load,
//! over real sockets and links of a real rate. Transports run one after the other, or several at
//! once. [`run`] measures one set of options, [`sweep`](fn@sweep) each value of some settings.
//!
//! ```text
//!   link       --link auto: a rate that leaves the cores idle enough
//!   base       each transport alone, one request at a time  → best possible time of each size
//!   runs       open loop at 80 % of every link, n runs      → slowdown by size
//!
//!   every run:  Site ─▶ Crew of nodes ─▶ one start instant ─▶ combined results
//!               fresh namespaces, fresh processes, fresh connections
//!
//!   phases ─▶ account (words, the bound, the command) ─▶ report (tables, JSON, CSV, page)
//! ```

mod account;
mod auto;
mod bound;
mod external;
mod kill;
mod node;
mod offered_load;
mod options;
mod phases;
pub mod report;
mod run;
mod setting;
mod site;
mod sweep;
mod switch;

pub use external::{ExternalTransport, external_agent};
pub use kill::{KillEffect, Period, Recovery};
pub use options::{ClusterOptions, IDLE, Link, Mix};
pub use run::JOB;
pub use setting::Setting;
pub use site::Venue;
pub use sweep::sweep;
pub use switch::{LevelLoad, SwitchLoad};

use serde_json::Value;

use self::account::Account;
use self::phases::Phases;
use self::report::Analysis;
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Task};
use apus_testbed::repeat::Repeater;

/// Measures all transports and combines the results.
///
/// A run that is disturbed or fails is repeated. A permanently failed run does not end the others:
/// their results are kept, and the findings report the missing run.
///
/// # Errors
///
/// An option has a value that cannot be measured at this venue, the fabric cannot be created, or
/// every run failed.
pub fn run(options: &ClusterOptions, venue: &Venue) -> Result<Findings, Error> {
    analysis(options, venue).map(|analysis| analysis.findings())
}

/// Measures all transports like [`run`], for callers with a custom comparison.
///
/// # Errors
///
/// As for [`run`].
pub fn analysis(options: &ClusterOptions, venue: &Venue) -> Result<Analysis, Error> {
    options.check()?;
    venue.check(options)?;
    let (options, _folder) = &options.prepared()?;
    let steps = options.alone().len() + options.repetition.runs * options.transports.len();
    let repeater = Repeater::of(steps, Progress::of(steps));
    let phases = Phases::new(venue, options, &repeater)?;
    let link = phases.link()?;
    let base = phases.base(link.mbps)?;
    let mut record = repeater.take();
    let runs = phases.runs(link.mbps, &phases.scale(&base), &options.transports)?;
    if runs.are_none() {
        return Err(repeater.failure());
    }
    record.extend(runs.record.clone());
    let notes = record.notes().into_iter().chain(repeater.neighbours()).collect();
    let command = account::command("cluster", venue, &options.with_link(link.mbps), &[]);
    let account = Account { venue, options, phases: &phases, link: &link, base: &base };
    let mut analysis = Analysis::of(account.measured(&runs.mixes, notes, command)?);
    analysis.outcome.phases = Some(record);
    Ok(analysis)
}

/// Runs one node in an agent.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    node::agent(task, control, None)
}
