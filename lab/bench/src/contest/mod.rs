//! Contests: one figure of several contenders on this machine, side by side.
//!
//! Each file names one contest: its contenders, the figures of a row and the ratios. All are run in the same way:
//! inside one run the contenders take turns, each with fresh processes, and from run to run another one begins, so that
//! whatever the machine does meanwhile meets all of them.

mod handoff;
mod options;
mod rate;
mod reading;
mod rounds;
mod rtt;
mod throughput;

pub use handoff::HANDOFF;
pub use options::Options;
pub use rate::RATE;
pub use reading::Reading;
pub use rtt::RTT;
pub use throughput::THROUGHPUT;

use clap::Command;
use serde_json::Value;

use crate::contenders::contender::Contender;
use apus_measure::exchange::Pair;
use apus_report::findings::Findings;
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Spawner, Task};

/// A contest: its contenders, and what is measured of them.
#[derive(Debug)]
pub struct Contest {
    /// Its name, like `rtt`.
    pub name: &'static str,
    /// One line of help.
    pub about: &'static str,
    /// More help: what is measured, and of which contenders.
    pub more: &'static str,
    /// A typical invocation.
    pub example: &'static str,
    /// The defaults of its options.
    pub defaults: fn() -> Options,
    /// Returns the contenders; for each number of shards one more, if the contest has such rows.
    contenders: fn(&[usize]) -> Vec<Box<dyn Contender>>,
    /// Whether the contest has rows for numbers of shards.
    has_shards: bool,
    /// Returns the figures of a contender in one run, by name.
    figures: fn(&Pair) -> Vec<(&'static str, Reading)>,
    /// The figure that is compared.
    compared: &'static str,
    /// Dividends and divisors of the ratios.
    ratios: &'static [(&'static str, &'static str)],
}

/// All contests.
pub const CONTESTS: [&Contest; 4] = [&RTT, &THROUGHPUT, &RATE, &HANDOFF];

impl Contest {
    /// Runs the contest.
    ///
    /// # Errors
    ///
    /// An option is out of range, or a contender failed.
    pub fn run(&self, options: &Options, host: &Spawner) -> Result<Findings, Error> {
        let outcome = rounds::run(self, options, host)?;
        Ok(Findings::new(outcome, self.about, self.more).with_all(Vec::new(), Vec::new(), []))
    }

    /// Returns `command`, which has [`Options`], with the defaults and the help of this contest.
    #[must_use]
    pub fn describe(&self, command: Command) -> Command {
        let Self { about, more, example, .. } = self;
        let Options { size, outstanding, repetition, .. } = (self.defaults)();
        command
            .mut_arg("shards", |argument| argument.hide(!self.has_shards))
            .mut_arg("size", |argument| argument.default_value(size.to_string()))
            .mut_arg("outstanding", |argument| argument.default_value(outstanding.to_string()))
            .mut_arg("poll", |argument| argument.default_value(repetition.poll.to_string()))
            .about(*about)
            .long_about(format!("{about}\n\n{more}"))
            .after_help(format!("Examples:\n  {example}\n  {example} --json"))
    }
}

/// The kind of task that [`agent`] does.
pub(crate) const JOB: &str = "bench";

/// Does one side's work in an agent.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    rounds::agent(task, control)
}
