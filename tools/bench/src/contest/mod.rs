//! How fast is one thing, beside others, on this machine?
//!
//! Each file names one experiment: its contenders, the figures of a row and the ratios. How an
//! experiment is run is the same for all of them: inside one run the contenders take turns, each
//! with fresh processes, and from run to run another one begins, so that whatever the machine does
//! meanwhile meets all of them.

mod handoff;
mod options;
mod rate;
mod reading;
mod rounds;
mod rtt;
mod throughput;

pub use handoff::HANDOFF;
pub use options::Options;
pub use options::{check_only, check_repetition, nobody_left};
pub use rate::RATE;
pub use reading::Reading;
pub use rounds::Pair;
pub use rtt::RTT;
pub use throughput::THROUGHPUT;

use serde_json::Value;

use apus_contenders::contender::{Contender, Plan};
use apus_report::result::Outcome;
use apus_testbed::error::Error;
use apus_testbed::machine::Cores;
use apus_testbed::process::{Control, Spawner, Task};

/// An experiment: who takes part in it, and what is measured.
#[derive(Debug)]
pub struct Experiment {
    /// Its name, like `rtt`.
    pub name: &'static str,
    /// What it does if nothing else is asked for.
    pub defaults: fn() -> Options,
    /// Who takes part.
    contenders: fn() -> Vec<Box<dyn Contender>>,
    /// What is measured of a contender in one run, by the name of the figure.
    figures: fn(&Pair) -> Vec<(&'static str, Reading)>,
    /// The figure that is compared.
    compared: &'static str,
    /// Whose figure is divided by whose.
    ratios: &'static [(&'static str, &'static str)],
}

/// All experiments of this kind.
pub const EXPERIMENTS: [&Experiment; 4] = [&RTT, &THROUGHPUT, &RATE, &HANDOFF];

impl Experiment {
    /// Runs the experiment.
    ///
    /// # Errors
    ///
    /// An option does not fit, or a contender failed.
    pub fn run(&self, options: &Options, host: &Spawner) -> Result<Outcome, Error> {
        rounds::run(self, options, host)
    }
}

impl Experiment {
    /// One run of apus alone, as the plan sets it up: its figures by name.
    pub fn apus_alone(
        &self,
        plan: &Plan,
        host: &Spawner,
        cores: Cores,
    ) -> Result<Vec<(&'static str, Reading)>, Error> {
        rounds::measure(self, "apus", plan, host, cores).map(|pair| (self.figures)(&pair))
    }
}

/// The kind of task that [`agent`] does.
pub(crate) const JOB: &str = "bench";

/// Does one side's work in an agent.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    rounds::agent(task, control)
}
