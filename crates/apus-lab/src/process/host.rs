//! Where do agents run?

use std::env;
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::process::{ExitCode, exit};

use serde_json::Value;

use super::Agent;
use super::body::Embodied;
use super::control::{Control, live};
use super::lines::Task;
use crate::error::{Doing, Error};

/// The hidden argument that makes a program an agent.
pub const AGENT: &str = "__agent";

/// Does the work of a [`Task`] and gives its result.
pub type Runner = fn(&Task, &mut Control) -> Result<Value, Error>;

/// Where agents run.
#[derive(Clone, Debug)]
pub enum Host {
    /// Each in a process of its own: a program that calls [`agent_main`] when its first argument is
    /// [`AGENT`].
    Processes(PathBuf),
    /// Each in a thread of this process. For tests: threads share what should be apart, the
    /// processor time that is charged to each side for instance.
    Threads(Runner),
}

impl Host {
    /// Processes of the program that is running.
    ///
    /// # Errors
    ///
    /// The system does not say which program that is.
    pub fn this_program() -> Result<Self, Error> {
        let program = env::current_exe().doing(|| "find this program's file".to_owned())?;
        Ok(Self::Processes(program))
    }

    /// Starts an agent that does `task`.
    ///
    /// # Errors
    ///
    /// The system does not let it start.
    pub fn start(&self, task: Task) -> Result<Agent, Error> {
        let embodied = match self {
            Self::Processes(program) => Embodied::process(program),
            Self::Threads(runner) => Embodied::thread(*runner),
        };
        Agent::begin(embodied.doing(|| format!("start {}", task.name))?, task)
    }
}

/// Is an agent: call this when the program's first argument is [`AGENT`], and do nothing else.
#[must_use]
pub fn agent_main(runner: Runner) -> ExitCode {
    let input = Box::new(BufReader::new(io::stdin()));
    match live(input, Box::new(io::stdout()), runner, || exit(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
